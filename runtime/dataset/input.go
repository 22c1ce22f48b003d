package dataset

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
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
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	status, err := f.Stat()
	if err == nil && !status.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
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
