//go:build e2e

package main

import (
	"os"
	"strconv"
	"testing"
)

const orderSize = 200

func orderGraphs(tb testing.TB) int {
	text := os.Getenv("STOKE_ORDER_GRAPHS")
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
