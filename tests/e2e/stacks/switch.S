// Switches of stacks as coroutine libraries write them, once with unwind tables and once without.
	.text

	.macro	SWITCH name cfi
	.globl	\name
	.type	\name, @function
\name:
	.if	\cfi
	.cfi_startproc
	.endif
	pushq	%rbp
	.if	\cfi
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	.endif
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	.if	\cfi
	.cfi_adjust_cfa_offset 40
	.endif
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	.if	\cfi
	.cfi_adjust_cfa_offset -40
	.endif
	popq	%rbp
	.if	\cfi
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	.endif
	ret
	.if	\cfi
	.cfi_endproc
	.endif
	.size	\name, .-\name
	.endm

	SWITCH	switch_stacks 1
	SWITCH	switch_stacks_no_cfi 0

// Where a new coroutine begins. The stack pointer is at a multiple of 16 plus 8 after the switch returned here.
	.globl	enter_coroutine
	.type	enter_coroutine, @function
	.cfi_startproc
	.cfi_undefined rip
	nop			// a return address is looked up at the byte before it
enter_coroutine:
	andq	$-16, %rsp
	call	*%rbp
	ud2
	.cfi_endproc
	.size	enter_coroutine, .-enter_coroutine

	.globl	enter_coroutine_no_cfi
	.type	enter_coroutine_no_cfi, @function
enter_coroutine_no_cfi:
	andq	$-16, %rsp
	call	*%rbp
	ud2
	.size	enter_coroutine_no_cfi, .-enter_coroutine_no_cfi

	.section	.note.GNU-stack,"",@progbits
