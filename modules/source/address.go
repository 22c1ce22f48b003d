package source

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	tfaddr "github.com/hashicorp/terraform-registry-address"
	svchost "github.com/hashicorp/terraform-svchost"
)

// Kind is how what an address names is installed.
type Kind uint8

const (
	// Folder is a path relative to the module that has the call.
	Folder Kind = iota + 1
	// Library is a module that is part of the program.
	Library
	// Published is a package that a registry knows in several versions.
	Published
	// Remote is a package at one place: a repository, an archive, or a folder
	// with an absolute path.
	Remote
)

// Address is the source argument of a module call, understood.
type Address struct {
	Kind   Kind
	Text   string // in its normal form, as the manifest has it
	Subdir string // folder within the package, "" for the package itself

	// Package names what is fetched, without Subdir: two addresses with equal
	// packages share one download.
	Package string

	registry tfaddr.ModulePackage
	getter   string // git, http or file
	url      *url.URL
}

// Host is the registry's host, as it is written.
func (a Address) Host() string { return a.registry.Host.ForDisplay() }

// Parse reads a source address. The error is one sentence that says what is
// wrong and what to write.
func Parse(text string) (Address, error) {
	switch {
	case text == "":
		return Address{}, errors.New("it is empty")
	case len(text) > 4096:
		return Address{}, errors.New("it is longer than 4096 bytes")
	case strings.ContainsFunc(text, unicode.IsControl), !utf8.ValidString(text):
		return Address{}, errors.New("it contains a control character or invalid text")
	case text == ".", text == "..":
		return Address{}, fmt.Errorf("a folder begins with ./ or ../: write %q", "./"+text)
	case isFolder(text):
		return parseFolder(text), nil
	case strings.HasPrefix(text, libraryPrefix):
		return parseLibrary(text)
	}
	a, err := parseRegistry(text)
	if err == nil {
		return a, nil
	}
	if remote, remoteErr := parseRemote(text); remoteErr == nil || !errors.Is(remoteErr, errNotRemote) {
		return remote, remoteErr
	}
	if pkg, _ := splitSubdir(text); strings.Count(pkg, "/") >= 2 && !strings.Contains(text, ":") {
		return Address{}, err
	}
	return Address{}, fmt.Errorf("if it is a folder, write %q; else it needs the form of a repository, an archive or a registry, such as git::https://example.com/repository.git or NAMESPACE/NAME/SYSTEM", "./"+text)
}

func isFolder(text string) bool {
	for _, prefix := range []string{"./", "../", `.\`, `..\`} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func parseFolder(text string) Address {
	clean := path.Clean(strings.ReplaceAll(text, `\`, "/"))
	switch {
	case clean == ".":
		clean = "./"
	case !strings.HasPrefix(clean, "../"):
		clean = "./" + clean
	}
	return Address{Kind: Folder, Text: clean}
}

const libraryPrefix = "library//"

func parseLibrary(text string) (Address, error) {
	name := strings.TrimPrefix(text, libraryPrefix)
	if name == "" || strings.ContainsAny(name, `/\?`) || strings.HasPrefix(name, ".") {
		return Address{}, errors.New("a module of the library is written as library//NAME")
	}
	return Address{Kind: Library, Text: text, Package: text}, nil
}

// Name is the name of a module of the library.
func (a Address) Name() string { return strings.TrimPrefix(a.Text, libraryPrefix) }

func parseRegistry(text string) (Address, error) {
	if strings.Contains(text, "::") || strings.Contains(text, "://") || strings.HasPrefix(text, "/") {
		return Address{}, errors.New("it is not an address of a registry")
	}
	pkg, sub := splitSubdir(text)
	m, err := tfaddr.ParseModuleSource(pkg)
	if err != nil {
		return Address{}, err
	}
	if m.Package.Host == svchost.Hostname("gitlab.com") && strings.Count(pkg, "/") == 2 {
		return Address{}, errors.New("write git::https://gitlab.com/… for a repository there")
	}
	if sub, err = cleanSubdir(sub); err != nil {
		return Address{}, err
	}
	name, err := packageName(m.Package)
	if err != nil {
		return Address{}, err
	}
	return Address{Kind: Published, Text: withSubdir(name, sub), Subdir: sub, Package: name, registry: m.Package}, nil
}

// packageName is the package as it is written. The library accepts hosts that
// it cannot show, and panics.
func packageName(p tfaddr.ModulePackage) (name string, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("its host is not a valid name")
		}
	}()
	return p.String(), nil
}

// splitSubdir takes the folder after a double slash out of an address. The
// query after a question mark stays with the package.
func splitSubdir(text string) (pkg, sub string) {
	from := 0
	if at := strings.Index(text, "://"); at >= 0 && !strings.ContainsAny(text[:at], "/?") { // after a scheme, not in a path
		from = at + 3
	}
	base, query, asked := strings.Cut(text, "?")
	if from > len(base) {
		return text, ""
	}
	at := strings.Index(base[from:], "//")
	if at < 0 {
		return text, ""
	}
	pkg, sub = base[:from+at], base[from+at+2:]
	if asked {
		pkg += "?" + query
	}
	return pkg, sub
}

// cleanSubdir is a folder within a package, which it cannot leave.
func cleanSubdir(sub string) (string, error) {
	if sub == "" {
		return "", nil
	}
	clean := path.Clean(strings.TrimLeft(sub, "/"))
	switch {
	case clean == ".":
		return "", nil
	case clean == "..", strings.HasPrefix(clean, "../"):
		return "", fmt.Errorf("the folder %q after // is outside of the fetched package", sub)
	}
	return clean, nil
}

func withSubdir(pkg, sub string) string {
	if sub == "" {
		return pkg
	}
	base, query, asked := strings.Cut(pkg, "?")
	base += "//" + sub
	if asked {
		base += "?" + query
	}
	return base
}
