//go:build !linux

package main

func forgetProgram() {}
