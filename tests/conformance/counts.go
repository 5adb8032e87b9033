// What is counted in a trace: AllocFree events by kind, by thread and by generation, with the sizes of the type table.
package main

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/exp/trace"
)

const experiment = "AllocFree"

// Kinds of the experimental batches, the first byte of their data.
const (
	batchTypes = 0
	batchInfo  = 1
)

type generation struct {
	Types       uint64 `json:"types"`      // rows of the type table
	TypeBytes   uint64 `json:"type_bytes"` // sum of their sizes
	Infos       uint64 `json:"infos"`      // info batches
	Other       uint64 `json:"other"`      // experimental batches of further kinds
	Events      uint64 `json:"events"`
	Allocations uint64 `json:"allocations"`
	sizes       map[uint64]uint64
}

type counts struct {
	File           string                       `json:"file"`
	Error          string                       `json:"error,omitempty"`
	Syncs          uint64                       `json:"syncs"`
	Events         uint64                       `json:"events"`
	Kinds          map[string]uint64            `json:"kinds"`
	Other          map[string]uint64            `json:"other_kinds"`
	Threads        map[string]map[string]uint64 `json:"threads"`
	Generations    []*generation                `json:"generations"`
	AllocatedBytes uint64                       `json:"allocated_bytes"` // HeapObjectAlloc, by the type table
	InheritedBytes uint64                       `json:"inherited_bytes"` // HeapObject, by the type table
	UnknownTypes   uint64                       `json:"unknown_types"`
}

func newCounts() *counts {
	return &counts{
		Kinds:   map[string]uint64{},
		Other:   map[string]uint64{},
		Threads: map[string]map[string]uint64{},
	}
}

// sync opens a generation. The Sync at the end of the trace has no tables and opens none.
func (c *counts) sync(s trace.Sync) error {
	c.Syncs++
	g := &generation{sizes: map[uint64]uint64{}}
	for _, batch := range s.ExperimentalBatches[experiment] {
		if len(batch.Data) == 0 {
			return fmt.Errorf("sync %d: an empty experimental batch", s.N)
		}
		var err error
		switch batch.Data[0] {
		case batchTypes:
			err = g.readTypes(batch.Data[1:])
		case batchInfo:
			g.Infos++
			err = checkInfo(batch.Data[1:])
		default:
			g.Other++
		}
		if err != nil {
			return fmt.Errorf("sync %d: %w", s.N, err)
		}
	}
	if len(s.ExperimentalBatches[experiment]) > 0 {
		c.Generations = append(c.Generations, g)
	}
	return nil
}

// readTypes reads (typeID addr size ptrBytes nameLen name)*.
func (g *generation) readTypes(data []byte) error {
	for len(data) > 0 {
		var row [5]uint64
		var err error
		for i := range row {
			if row[i], data, err = uvarint(data); err != nil {
				return fmt.Errorf("type table: %w", err)
			}
		}
		if uint64(len(data)) < row[4] {
			return fmt.Errorf("type table: name of %d bytes, %d left", row[4], len(data))
		}
		data = data[row[4]:]
		if _, twice := g.sizes[row[0]]; twice {
			return fmt.Errorf("type table: type %d is defined twice", row[0])
		}
		g.sizes[row[0]] = row[2]
		g.Types++
		g.TypeBytes += row[2]
	}
	return nil
}

// checkInfo reads minHeapAddr pageSize minHeapAlign fixedStack.
func checkInfo(data []byte) error {
	for i := 0; i < 4; i++ {
		value, rest, err := uvarint(data)
		if err != nil {
			return fmt.Errorf("info batch: %w", err)
		}
		if i > 0 && value == 0 {
			return fmt.Errorf("info batch: field %d is zero", i)
		}
		data = rest
	}
	if len(data) != 0 {
		return fmt.Errorf("info batch: %d bytes too many", len(data))
	}
	return nil
}

func (c *counts) experimental(event trace.Event) error {
	e := event.Experimental()
	if e.Experiment != experiment {
		return fmt.Errorf("event of the experiment %q", e.Experiment)
	}
	if len(c.Generations) == 0 {
		return fmt.Errorf("%s before any generation", e.Name)
	}
	g := c.Generations[len(c.Generations)-1]
	c.Events++
	g.Events++
	c.Kinds[e.Name]++
	thread := fmt.Sprint(int64(event.Thread()))
	if c.Threads[thread] == nil {
		c.Threads[thread] = map[string]uint64{}
	}
	c.Threads[thread][e.Name]++
	if e.Name != "HeapObjectAlloc" && e.Name != "HeapObject" {
		return nil
	}
	size, known := g.sizes[e.ArgValue(1).Uint64()]
	if !known {
		c.UnknownTypes++
	}
	if e.Name == "HeapObject" {
		c.InheritedBytes += size
		return nil
	}
	g.Allocations++
	c.AllocatedBytes += size
	return nil
}

func uvarint(data []byte) (uint64, []byte, error) {
	value, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, fmt.Errorf("bad integer with %d bytes left", len(data))
	}
	return value, data[n:], nil
}
