package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// archiveKinds are the endings of archives, longest first.
var archiveKinds = []struct{ ending, kind string }{
	{".tar.bz2", "tar.bz2"}, {".tar.gz", "tar.gz"}, {".tar.xz", "tar.xz"},
	{".tbz2", "tar.bz2"}, {".tgz", "tar.gz"}, {".txz", "tar.xz"}, {".tar", "tar"}, {".zip", "zip"},
}

// archiveKind tells from the name, or from what ?archive= says, how a file
// is packed; "" is not at all.
func archiveKind(name, said string) (string, error) {
	switch said {
	case "":
		for _, k := range archiveKinds {
			if strings.HasSuffix(name, k.ending) {
				return k.kind, nil
			}
		}
		return "", nil
	case "false", "0":
		return "", nil
	}
	for _, k := range archiveKinds {
		if "."+said == k.ending {
			return k.kind, nil
		}
	}
	return "", fmt.Errorf("archives of the kind %q are not supported; tar, tar.gz, tar.bz2, tar.xz and zip are", said)
}

// unpack writes what is in an archive into a folder that does not exist yet.
func unpack(ctx context.Context, kind, archive, into string, l limits) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := plant(into, l)
	if err != nil {
		return err
	}
	if kind == "zip" {
		err = t.unzip(ctx, f)
	} else {
		err = t.decompress(ctx, kind, f)
	}
	if closing := t.close(); err == nil {
		err = closing
	}
	return explainDecompression(kind, err)
}

// explainDecompression says what an error of a decompressor means.
func explainDecompression(kind string, err error) error {
	var corrupt bzip2.StructuralError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the %s archive is cut off", kind)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader),
		errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.As(err, &corrupt), errors.Is(err, io.EOF):
		return fmt.Errorf("it is not a sound %s archive: %w", kind, err)
	}
	return err
}

func (t *tree) decompress(ctx context.Context, kind string, f io.Reader) error {
	in := &contextReader{ctx: ctx, r: f}
	switch kind {
	case "tar.gz":
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		return t.untar(z)
	case "tar.bz2":
		return t.untar(bzip2.NewReader(in))
	case "tar.xz":
		return t.unxz(ctx, f)
	}
	return t.untar(in)
}

// unxz has the program xz do what the standard library cannot.
func (t *tree) unxz(ctx context.Context, f io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program, err := exec.LookPath("xz")
	if err != nil {
		return errors.New("the program xz is needed for tar.xz archives, and it is not installed")
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--decompress", "--stdout")
	cmd.Stdin, cmd.Stderr = f, &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = t.untar(out)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(out, t.left.bytes)) // padding
	}
	if err != nil {
		cancel()
	}
	if failed := cmd.Wait(); failed != nil && said.Len() > 0 {
		return fmt.Errorf("it is not a sound tar.xz archive: %s", firstLine(said.String()))
	}
	return err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

func (t *tree) untar(r io.Reader) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = t.file(h.Name, h.FileInfo().Mode(), in)
		case tar.TypeDir:
			err = t.folder(h.Name)
		case tar.TypeSymlink:
			err = t.link(h.Name, h.Linkname)
		case tar.TypeLink:
			err = t.hardLink(h.Name, h.Linkname)
		case tar.TypeXGlobalHeader, tar.TypeXHeader, tar.TypeGNULongName, tar.TypeGNULongLink:
		default:
			err = fmt.Errorf("the entry %q is neither a file, a folder nor a link", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (t *tree) unzip(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	in, err := zip.NewReader(f, info.Size())
	if err != nil {
		return err
	}
	if len(in.File) > t.left.files {
		return errors.New("it has too many entries")
	}
	for _, entry := range in.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.unzipEntry(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) unzipEntry(ctx context.Context, entry *zip.File) error {
	mode := entry.Mode()
	if mode.IsDir() {
		return t.folder(entry.Name)
	}
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	switch {
	case mode&fs.ModeSymlink != 0:
		target, err := io.ReadAll(io.LimitReader(content, 4096))
		if err != nil {
			return err
		}
		return t.link(entry.Name, string(target))
	case !mode.IsRegular():
		return fmt.Errorf("the entry %q is neither a file, a folder nor a link", entry.Name)
	}
	return t.file(entry.Name, mode, &contextReader{ctx: ctx, r: content})
}

// contextReader is a reader that a context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (p *contextReader) Read(into []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(into)
}
