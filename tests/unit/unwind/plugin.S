// A library whose call site is at the same place for every FRAME, the bytes of its frame: a rule kept from one build is
// wrong for the other. plugin_call(function) calls its argument.
	.text
	.globl	plugin_call
	.type	plugin_call, @function
plugin_call:
	.cfi_startproc
	.byte	0x48, 0x81, 0xec	// sub $FRAME, %rsp with a 32-bit immediate, whatever its value
	.long	FRAME
	.cfi_adjust_cfa_offset FRAME
	call	*%rdi
	.byte	0x48, 0x81, 0xc4	// add $FRAME, %rsp
	.long	FRAME
	.cfi_adjust_cfa_offset -FRAME
	ret
	.cfi_endproc
	.size	plugin_call, .-plugin_call
	.section	.note.GNU-stack,"",@progbits
