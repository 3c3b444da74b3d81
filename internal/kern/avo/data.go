package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// words holds each constant once, by its bits.
var words = map[uint64]Mem{}

func word(v uint64) Mem {
	m, ok := words[v]
	if !ok {
		m = ConstData(fmt.Sprintf("word_%016x", v), U64(v))
		words[v] = m
	}
	return m
}

// tables16 holds each table of numbers once.
var tables16 = map[[16]float64]Mem{}

func doubles(values [16]float64) Mem {
	t, ok := tables16[values]
	if !ok {
		t = GLOBL(fmt.Sprintf("doubles%d", len(tables16)), 8|16) // RODATA|NOPTR
		for k, v := range values {
			DATA(8*k, U64(math.Float64bits(v)))
		}
		tables16[values] = t
	}
	return t
}

func double(v float64) Mem { return word(math.Float64bits(v)) }

var maskTable, upTo16 Mem // the numbers 0 to 15

// masks is a table of eight ones and eight zeros: from the (8−r)-th on, a mask of
// r values.
func masks() {
	maskTable = GLOBL("masks", 8|16) // RODATA|NOPTR
	for i := range 16 {
		v := U32(0)
		if i < 8 {
			v = ^U32(0)
		}
		DATA(4*i, v)
	}
	upTo16 = GLOBL("upTo16", 8|16)
	for i := range 16 {
		DATA(4*i, U32(uint32(i)))
	}
}

// A tail masks the first r of eight columns, 0 < r < 8.
type tail struct {
	m    machine
	k    reg.OpmaskVirtual // AVX-512
	x, y []reg.VecVirtual  // AVX2: masks of 32 and 64 bits
}

func (m machine) tail(r reg.GPVirtual) tail {
	t := tail{m: m}
	if m.wide {
		all := GP32()
		MOVL(U32(0xFFFFFFFF), all)
		BZHIL(r.As32(), all, all)
		t.k = K()
		KMOVW(all, t.k)
		return t
	}
	base := GP64()
	NEGQ(r)
	at := r // 8 − r, from the address
	LEAQ(maskTable, base)
	for i := range 2 {
		x, y := XMM(), YMM()
		VMOVDQU(Mem{Base: base, Index: at, Scale: 4, Disp: 32 + 16*i}, x)
		VPMOVSXDQ(x, y)
		t.x, t.y = append(t.x, x), append(t.y, y)
	}
	return t
}

// load puts part i of eight columns at p + (index + off)·size into dst, as doubles. A
// nil tail means all columns.
func (m machine) load(p, index reg.GPVirtual, f32 bool, off, i int, t *tail, dst reg.VecVirtual) {
	size := 8
	if f32 {
		size = 4
	}
	at := Mem{Base: p, Index: index, Scale: uint8(size), Disp: (off + i*m.doubles()) * size}
	switch {
	case t == nil && f32:
		VCVTPS2PD(at, dst)
	case t == nil:
		VMOVUPD(at, dst)
	case m.wide && f32:
		VCVTPS2PD_Z(at, t.k, dst)
	case m.wide:
		VMOVUPD_Z(at, t.k, dst)
	case f32:
		VMASKMOVPS(at, t.x[i], dst.AsX())
		VCVTPS2PD(dst.AsX(), dst)
	default:
		VMASKMOVPD(at, t.y[i], dst)
	}
}

// store is the reverse of load, for doubles.
func (m machine) store(src reg.VecVirtual, p, index reg.GPVirtual, off, i int, t *tail) {
	at := Mem{Base: p, Index: index, Scale: 8, Disp: (off + i*m.doubles()) * 8}
	switch {
	case t == nil:
		VMOVUPD(src, at)
	case m.wide:
		VMOVUPD(src, t.k, at)
	default:
		VMASKMOVPD(src, t.y[i], at)
	}
}
