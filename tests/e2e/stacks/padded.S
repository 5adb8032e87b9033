// padded_call(function, argument, pad, site): calls function(argument) from a frame that is found by its frame pointer, with
// `pad` bytes (a multiple of 16) that nobody writes to below it, from one of two places.
	.text
	.globl	padded_call
	.type	padded_call, @function
padded_call:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	subq	%rdx, %rsp
	movq	%rdi, %rax
	movq	%rsi, %rdi
	testl	%ecx, %ecx
	jne	1f
	call	*%rax
	jmp	2f
1:
	call	*%rax
2:
	leave
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size	padded_call, .-padded_call
	.section	.note.GNU-stack,"",@progbits
