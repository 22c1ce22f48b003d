// Halve copies every second file of a zip file, so that each folder in it keeps half of
// its files.
package main

import (
	"archive/zip"
	"fmt"
	"os"
	"path"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: halve FROM.zip TO.zip")
		os.Exit(2)
	}
	if err := halve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "halve:", err)
		os.Exit(1)
	}
}

func halve(from, to string) error {
	in, err := zip.OpenReader(from)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	out := zip.NewWriter(f)
	seen := make(map[string]int) // files by folder
	for _, file := range in.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		folder := path.Dir(file.Name)
		seen[folder]++
		if seen[folder]%2 == 0 {
			continue
		}
		if err := out.Copy(file); err != nil {
			return fmt.Errorf("copy %s: %w", file.Name, err)
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return f.Close()
}
