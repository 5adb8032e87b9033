// Command traceafconformance reads traces with Go's own reader and prints, one JSON object a line, what it counted.
//
//	traceafconformance FILE...
//
// FILE is a plain Go trace or one in zstd frames (then the program zstd must be in PATH). Nothing of traceaf is used
// here: the numbers are an independent count for run.py to compare with traceaf-report's.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/exp/trace"
)

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: traceafconformance FILE...")
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	failed := false
	for _, path := range os.Args[1:] {
		counts, err := countFile(path)
		counts.File = path
		if err != nil {
			counts.Error = err.Error()
			failed = true
		}
		if err := out.Encode(counts); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// countFile opens path, through zstd where it is compressed, and counts its events.
func countFile(path string) (*counts, error) {
	c := newCounts()
	file, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer file.Close()
	plain := bufio.NewReaderSize(file, 1<<20)
	magic, err := plain.Peek(len(zstdMagic))
	if err != nil {
		return c, fmt.Errorf("reading the first bytes: %w", err)
	}
	if !bytes.Equal(magic, zstdMagic) {
		return c, c.read(plain)
	}
	unpack := exec.Command("zstd", "-dcq")
	unpack.Stdin = plain
	unpack.Stderr = os.Stderr
	pipe, err := unpack.StdoutPipe()
	if err != nil {
		return c, err
	}
	if err := unpack.Start(); err != nil {
		return c, err
	}
	readError := c.read(bufio.NewReaderSize(pipe, 1<<20))
	if readError != nil {
		_, _ = io.Copy(io.Discard, pipe)
	}
	return c, errors.Join(readError, unpack.Wait())
}

// read consumes a whole trace. A generation's tables arrive with the Sync event that opens it.
func (c *counts) read(r io.Reader) error {
	reader, err := trace.NewReader(r)
	if err != nil {
		return err
	}
	for {
		event, err := reader.ReadEvent()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch event.Kind() {
		case trace.EventSync:
			err = c.sync(event.Sync())
		case trace.EventExperimental:
			err = c.experimental(event)
		default:
			c.Other[event.Kind().String()]++
		}
		if err != nil {
			return err
		}
	}
}
