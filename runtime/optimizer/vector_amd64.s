//go:build amd64 && !amd64.v3

#include "textflag.h"

// The comments give the lines of the Go functions that the loops compute, eight
// elements at a time, with the same roundings.

// The bits of a float32 except its sign, and the smallest normal number.
DATA ·magnitude(SB)/4, $0x7fffffff
GLOBL ·magnitude(SB), RODATA, $4
DATA ·smallest(SB)/4, $0x00800000
GLOBL ·smallest(SB), RODATA, $4

// func momentum8(into, w, slot, s *float32, n int, gradient, decay, momentum, rate float32)
TEXT ·momentum8(SB), NOSPLIT, $0-56
	MOVQ into+0(FP), R8
	MOVQ w+8(FP), DI
	MOVQ slot+16(FP), SI
	MOVQ s+24(FP), DX
	MOVQ n+32(FP), CX
	VBROADCASTSS gradient+40(FP), Y0
	VBROADCASTSS decay+44(FP), Y1
	VBROADCASTSS momentum+48(FP), Y2
	VBROADCASTSS rate+52(FP), Y3
	VBROADCASTSS ·magnitude(SB), Y9
	VBROADCASTSS ·smallest(SB), Y10
	SHLQ $2, CX
	XORQ AX, AX
momentum:
	VMOVUPS (DI)(AX*1), Y4
	VMULPS (DX)(AX*1), Y0, Y5 // s[i]*gradient
	VMULPS Y4, Y1, Y6         // decay*x
	VADDPS Y6, Y5, Y5
	VMULPS (SI)(AX*1), Y2, Y7 // momentum*slot[i]
	VADDPS Y5, Y7, Y7
	VANDPS Y9, Y7, Y11
	VCMPPS $5, Y10, Y11, Y11  // not below smallest: also NaN
	VANDPS Y11, Y7, Y7        // m
	VMOVUPS Y7, (SI)(AX*1)
	VMULPS Y7, Y3, Y8         // rate*m
	VSUBPS Y8, Y4, Y4
	VMOVUPS Y4, (R8)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT momentum
	VZEROUPPER
	RET

// func nesterov8(into, w, slot, s *float32, n int, gradient, decay, momentum, rate float32)
TEXT ·nesterov8(SB), NOSPLIT, $0-56
	MOVQ into+0(FP), R8
	MOVQ w+8(FP), DI
	MOVQ slot+16(FP), SI
	MOVQ s+24(FP), DX
	MOVQ n+32(FP), CX
	VBROADCASTSS gradient+40(FP), Y0
	VBROADCASTSS decay+44(FP), Y1
	VBROADCASTSS momentum+48(FP), Y2
	VBROADCASTSS rate+52(FP), Y3
	VBROADCASTSS ·magnitude(SB), Y9
	VBROADCASTSS ·smallest(SB), Y10
	SHLQ $2, CX
	XORQ AX, AX
nesterov:
	VMOVUPS (DI)(AX*1), Y4
	VMULPS (DX)(AX*1), Y0, Y5
	VMULPS Y4, Y1, Y6
	VADDPS Y6, Y5, Y5         // g
	VMULPS (SI)(AX*1), Y2, Y7
	VADDPS Y5, Y7, Y7
	VANDPS Y9, Y7, Y11
	VCMPPS $5, Y10, Y11, Y11
	VANDPS Y11, Y7, Y7        // m
	VMOVUPS Y7, (SI)(AX*1)
	VMULPS Y7, Y2, Y8         // momentum*m
	VADDPS Y8, Y5, Y5
	VMULPS Y5, Y3, Y5         // rate*(g+momentum*m)
	VSUBPS Y5, Y4, Y4
	VMOVUPS Y4, (R8)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT nesterov
	VZEROUPPER
	RET

// func sgd8(into, w, s *float32, n int, gradient, decay, rate float32)
TEXT ·sgd8(SB), NOSPLIT, $0-44
	MOVQ into+0(FP), R8
	MOVQ w+8(FP), DI
	MOVQ s+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS gradient+32(FP), Y0
	VBROADCASTSS decay+36(FP), Y1
	VBROADCASTSS rate+40(FP), Y3
	SHLQ $2, CX
	XORQ AX, AX
sgd:
	VMOVUPS (DI)(AX*1), Y4
	VMULPS (DX)(AX*1), Y0, Y5 // s[i]*gradient
	VMULPS Y4, Y1, Y6         // decay*w[i]
	VADDPS Y6, Y5, Y5
	VMULPS Y5, Y3, Y5
	VSUBPS Y5, Y4, Y4
	VMOVUPS Y4, (R8)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT sgd
	VZEROUPPER
	RET

// func add8(into, left, right *float32, n int)
TEXT ·add8(SB), NOSPLIT, $0-32
	MOVQ into+0(FP), DI
	MOVQ left+8(FP), SI
	MOVQ right+16(FP), DX
	MOVQ n+24(FP), CX
	SHLQ $2, CX
	XORQ AX, AX
add:
	VMOVUPS (SI)(AX*1), Y0
	VADDPS (DX)(AX*1), Y0, Y0 // left[i] + right[i]
	VMOVUPS Y0, (DI)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT add
	VZEROUPPER
	RET

// func squares16(v *float32, n int, rows *[16]float64)
TEXT ·squares16(SB), NOSPLIT, $0-24
	MOVQ v+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ rows+16(FP), DX
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	SHLQ $2, CX
	XORQ AX, AX
squares:
	VCVTPS2PD (SI)(AX*1), Y4
	VCVTPS2PD 16(SI)(AX*1), Y5
	VCVTPS2PD 32(SI)(AX*1), Y6
	VCVTPS2PD 48(SI)(AX*1), Y7
	VMULPD Y4, Y4, Y4
	VMULPD Y5, Y5, Y5
	VMULPD Y6, Y6, Y6
	VMULPD Y7, Y7, Y7
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	ADDQ $64, AX
	CMPQ AX, CX
	JLT squares
	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMOVUPD Y2, 64(DX)
	VMOVUPD Y3, 96(DX)
	VZEROUPPER
	RET

// func residues8(v *float32, n int, rows *[8]float32)
TEXT ·residues8(SB), NOSPLIT, $0-24
	MOVQ v+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ rows+16(FP), DX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	SHLQ $2, CX
	XORQ AX, AX
residues:
	VMOVUPS (SI)(AX*1), Y2
	VMOVUPS 32(SI)(AX*1), Y3
	VSUBPS Y2, Y2, Y2
	VSUBPS Y3, Y3, Y3
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	ADDQ $64, AX
	CMPQ AX, CX
	JLT residues
	VADDPS Y1, Y0, Y0
	VMOVUPS Y0, (DX)
	VZEROUPPER
	RET
