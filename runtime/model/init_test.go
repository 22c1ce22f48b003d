package model

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"testing"
)

// Runs of earlier versions go on from their seed: what it gives may not change.
func TestInitStaysAsItWas(t *testing.T) {
	vars, _, err := small().Layout()
	if err != nil {
		t.Fatal(err)
	}
	vector := make([]float32, Length(vars))
	if err := small().Init(7, vector); err != nil {
		t.Fatal(err)
	}
	text, err := binary.Append(nil, binary.LittleEndian, vector)
	if err != nil {
		t.Fatal(err)
	}
	if sum := crc32.ChecksumIEEE(text); sum != 0xc96209f1 {
		t.Errorf("the initial values of seed 7 have the checksum %08x", sum)
	}
}

// A row is the same for whoever asks first, in whatever order, and its own.
func TestRow(t *testing.T) {
	users := Table{Name: "users", Width: 5, Init: Init{Uniform, 0.05}}
	items := Table{Name: "items", Width: 5, Init: Init{Uniform, 0.05}}
	row := func(table Table, seed uint64, id int64) []float32 {
		r := make([]float32, table.Width)
		table.Row(seed, id, r)
		return r
	}
	first := row(users, 1, 42)
	for i, v := range first {
		if v == 0 || math.Abs(float64(v)) > 0.05 {
			t.Errorf("element %d is %v", i, v)
		}
	}
	for id := range int64(100) {
		row(users, 1, id)
	}
	if !slices.Equal(first, row(users, 1, 42)) {
		t.Error("a row depends on what was asked before")
	}
	for name, other := range map[string][]float32{
		"another id": row(users, 1, 43), "a negative id": row(users, 1, -42), "another seed": row(users, 2, 42), "another table": row(items, 1, 42),
	} {
		if slices.Equal(first, other) {
			t.Errorf("%s has the same row", name)
		}
	}
	ones := Table{Name: "ones", Width: 2, Init: Init{Distribution: Ones}}
	if got := row(ones, 1, 1); !slices.Equal(got, []float32{1, 1}) {
		t.Errorf("a row of ones begins as %v", got)
	}
}
