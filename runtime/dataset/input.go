package dataset

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// deflateRatio is the most that DEFLATE can expand.
const deflateRatio = 1032

// input is a file that people gave, decompressed if its name ends in .gz.
type input struct {
	io.Reader
	file  *os.File
	most  int64 // bytes that it can have
	exact bool  // it has exactly that many
}

func openInput(path string) (*input, error) {
	status, err := os.Stat(path) // before it is opened: a pipe would wait for its writer
	if err == nil && !status.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err == nil {
		status, err = f.Stat()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	in := &input{file: f, most: status.Size(), exact: true, Reader: bufio.NewReaderSize(f, 1<<18)}
	if !strings.HasSuffix(path, ".gz") {
		return in, nil
	}
	z, err := gzip.NewReader(in.Reader)
	if err != nil {
		f.Close()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = truncated(err)
		}
		return nil, fmt.Errorf("%s: decompress: %w", path, err)
	}
	in.Reader, in.exact = z, false
	in.most = in.most * deflateRatio
	return in, nil
}

func (in *input) Close() error { return in.file.Close() }

// filePair is the paths of the files of both splits; test is empty where one
// file has both.
type filePair struct{ train, test string }

// splitFiles finds a folder's files train and test with an extension, or takes
// one file.
func splitFiles(path, extension string) (filePair, error) {
	status, err := os.Stat(path)
	if err != nil {
		return filePair{}, fmt.Errorf("the dataset's path: %w", err)
	}
	if !status.IsDir() {
		return filePair{train: path}, nil
	}
	find := func(split Split) string {
		for _, end := range []string{"", ".gz"} {
			p := filepath.Join(path, string(split)+extension+end)
			if _, err := os.Stat(p); err == nil {
				return p
			}
		}
		return ""
	}
	train := find(Train)
	if train == "" {
		return filePair{}, fmt.Errorf("%s has no file train%s (or with .gz)", path, extension)
	}
	return filePair{train, find(Test)}, nil
}
