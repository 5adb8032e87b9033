// Functions written by hand, as in libraries with assembly: without tables, with rbp as data, with wrong tables.
// Each takes a function pointer in rdi and calls it.
	.text

// No unwind tables, rbp untouched, nothing pushed but padding.
	.globl	no_cfi_call
	.type	no_cfi_call, @function
no_cfi_call:
	subq	$24, %rsp
	call	*%rdi
	addq	$24, %rsp
	ret
	.size	no_cfi_call, .-no_cfi_call

// No unwind tables, but a frame pointer.
	.globl	no_cfi_frame_call
	.type	no_cfi_frame_call, @function
no_cfi_frame_call:
	pushq	%rbp
	movq	%rsp, %rbp
	subq	$48, %rsp
	call	*%rdi
	leave
	ret
	.size	no_cfi_frame_call, .-no_cfi_frame_call

// No unwind tables, and rbp holds rsi, whatever that is.
	.globl	no_cfi_data_rbp_call
	.type	no_cfi_data_rbp_call, @function
no_cfi_data_rbp_call:
	pushq	%rbp
	movq	%rsi, %rbp
	call	*%rdi
	popq	%rbp
	ret
	.size	no_cfi_data_rbp_call, .-no_cfi_data_rbp_call

// Correct tables while rbp holds rsi.
	.globl	data_rbp_call
	.type	data_rbp_call, @function
data_rbp_call:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	movq	%rsi, %rbp
	call	*%rdi
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size	data_rbp_call, .-data_rbp_call

// Tables that say the frame is found through rbp, which holds rsi.
	.globl	wrong_rbp_call
	.type	wrong_rbp_call, @function
wrong_rbp_call:
	.cfi_startproc
	pushq	%rbp
	movq	%rsi, %rbp
	.cfi_def_cfa rbp, 16
	.cfi_offset rbp, -16
	call	*%rdi
	popq	%rbp
	ret
	.cfi_endproc
	.size	wrong_rbp_call, .-wrong_rbp_call

// Tables that need a register nobody follows.
	.globl	unknown_register_call
	.type	unknown_register_call, @function
unknown_register_call:
	.cfi_startproc
	pushq	%rbx
	leaq	16(%rsp), %rbx
	.cfi_def_cfa rbx, 0
	call	*%rdi
	popq	%rbx
	ret
	.cfi_endproc
	.size	unknown_register_call, .-unknown_register_call

// CFA by a general expression: *(rsp + 8) + 2 * 4, as hand-written cryptographic code has it.
	.globl	expression_call
	.type	expression_call, @function
expression_call:
	.cfi_startproc
	movq	%rsp, %rax
	subq	$40, %rsp
	andq	$-64, %rsp
	subq	$64, %rsp
	movq	%rax, 8(%rsp)
	// DW_CFA_def_cfa_expression, 7 bytes: breg7 8; deref; lit2; lit4; mul; plus
	.cfi_escape 0x0f, 0x07, 0x77, 0x08, 0x06, 0x32, 0x34, 0x1e, 0x22
	call	*%rdi
	movq	8(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size	expression_call, .-expression_call

	.section	.note.GNU-stack,"",@progbits
