package lang

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxFileText bounds what file, filebase64 and templatefile read, in bytes;
// the hashes read files of any size.
const maxFileText = 64 << 20

// folder is where relative file names start.
type folder string

// resolve returns where a file is, as the functions name files.
func (f folder) resolve(name string) (string, error) {
	name, err := expandHome(name)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(string(f), name)
	}
	return filepath.Clean(name), nil
}

func expandHome(name string) (string, error) {
	if !strings.HasPrefix(name, "~") {
		return name, nil
	}
	rest := name[1:]
	if rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return "", errors.New("only ~ and ~/… are expanded, no other user's home")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory: %w", err)
	}
	return filepath.Join(home, rest), nil
}

// open opens a regular file; for anything else it fails without waiting.
func (f folder) open(name string) (*os.File, error) {
	path, err := f.resolve(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such file; functions read files that exist before the plan, not files " +
			"that a resource makes")
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder, not a file")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	return os.Open(path)
}

func (f folder) read(name string) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFileText+1))
	if err == nil && len(content) > maxFileText {
		err = fmt.Errorf("it has more than %d MiB, which is too much for a value", maxFileText>>20)
	}
	return content, err
}

// ofPath makes a function of a file's name. An error says which file, unless
// its name is sensitive.
func ofPath(ty cty.Type, f func(name string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "path", Type: cty.String, AllowMarked: true}},
		Type:         function.StaticReturnType(ty),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name, marks := args[0].Unmark()
			v, err := f(name.AsString())
			if err != nil {
				return cty.UnknownVal(ty), fileError(args[0], err)
			}
			return v.WithMarks(marks), nil
		},
	})
}

func fileError(name cty.Value, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // without the path, which may be sensitive
	}
	return function.NewArgErrorf(0, "%s: %w", spell(name), err)
}

// files are the functions that read the file system. An error of interrupted
// ends the functions that walk through folders.
func (f folder) files(interrupted func() error) map[string]function.Function {
	return map[string]function.Function{
		"file": ofPath(cty.String, func(name string) (cty.Value, error) {
			content, err := f.read(name)
			if err == nil && !utf8.Valid(content) {
				err = errors.New("it is not UTF-8 text; use filebase64, or a hash such as filesha256")
			}
			return cty.StringVal(string(content)), err
		}),
		"filebase64": ofPath(cty.String, func(name string) (cty.Value, error) {
			content, err := f.read(name)
			return cty.StringVal(base64.StdEncoding.EncodeToString(content)), err
		}),
		"fileexists":       ofPath(cty.Bool, f.exists),
		"fileset":          f.fileset(interrupted),
		"filemd5":          f.digest(hexMD5),
		"filesha1":         f.digest(hexSHA1),
		"filesha256":       f.digest(hexSHA256),
		"filesha512":       f.digest(hexSHA512),
		"filebase64sha256": f.digest(base64SHA256),
		"filebase64sha512": f.digest(base64SHA512),
	}
}

func (f folder) digest(d digest) function.Function {
	return ofPath(cty.String, func(name string) (cty.Value, error) {
		file, err := f.open(name)
		if err != nil {
			return cty.NilVal, err
		}
		defer file.Close()
		h := d.new()
		if _, err := io.Copy(h, file); err != nil {
			return cty.NilVal, err
		}
		return cty.StringVal(d.encode(h.Sum(nil))), nil
	})
}

func (f folder) exists(name string) (cty.Value, error) {
	path, err := f.resolve(name)
	if err != nil {
		return cty.NilVal, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cty.False, nil
	case err != nil:
		return cty.NilVal, err
	case info.IsDir():
		return cty.NilVal, errors.New("it is a folder, not a file")
	case !info.Mode().IsRegular():
		return cty.NilVal, errors.New("it is no regular file")
	}
	return cty.True, nil
}

var (
	basenameFunc = ofStrings(func(a []string) (string, error) { return filepath.Base(a[0]), nil }, "path")
	dirnameFunc  = ofStrings(func(a []string) (string, error) { return filepath.Dir(a[0]), nil }, "path")
	abspathFunc  = ofStrings(func(a []string) (string, error) {
		path, err := filepath.Abs(a[0])
		return filepath.ToSlash(path), err
	}, "path")
	pathexpandFunc = ofStrings(func(a []string) (string, error) { return expandHome(a[0]) }, "path")
)
