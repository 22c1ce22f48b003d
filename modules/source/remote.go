package source

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// errNotRemote says that an address has no form of a place.
var errNotRemote = errors.New("it names no place")

var (
	forced = pattern.New(`^([A-Za-z0-9]+)::(.+)$`)
	// secure copy's way of writing: user@host:path
	scpLike = pattern.New(`^(?:([A-Za-z0-9_.-]+)@)?([A-Za-z0-9_.-]+):/?([^/].*)$`)
)

// gitSchemes are the transports that git may use.
var gitSchemes = map[string]bool{"https": true, "http": true, "ssh": true, "git": true, "file": true}

// parseRemote reads the address of a repository, an archive or an absolute
// path, in all the short forms that Terraform knows.
func parseRemote(text string) (Address, error) {
	getter, rest := "", text
	if m := forced.FindStringSubmatch(text); m != nil {
		getter, rest = strings.ToLower(m[1]), m[2]
	}
	if err := unsupported(getter, rest); err != nil {
		return Address{}, err
	}
	pkg, sub := splitSubdir(rest)
	place, implied, more, err := locate(getter, pkg)
	if err != nil {
		return Address{}, err
	}
	named := getter != ""
	if !named {
		getter = implied
	}
	if sub, err = cleanSubdir(path.Join(more, sub)); err != nil {
		return Address{}, err
	}
	u, err := url.Parse(place)
	if err != nil {
		return Address{}, fmt.Errorf("it is not a valid URL: %s", urlCause(err))
	}
	return newRemote(named, getter, implied, place, sub, u)
}

// newRemote checks what has been found out about a remote address.
func newRemote(named bool, getter, implied, place, sub string, u *url.URL) (Address, error) {
	a := Address{Kind: Remote, Subdir: sub, url: u}
	switch {
	case getter == "git" && !gitSchemes[u.Scheme]:
		return Address{}, fmt.Errorf("git cannot fetch over %q here; use https or ssh", u.Scheme)
	case getter == "git":
		a.getter = "git"
		a.Package = "git::" + place
		if err := checkGit(u); err != nil {
			return Address{}, err
		}
	case (getter == "http" || getter == "https") && (u.Scheme == "http" || u.Scheme == "https"):
		a.getter, a.Package = "http", place
	case getter == "file" && u.Scheme == "file":
		a.getter, a.Package = "file", place
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return Address{}, errors.New("a file URL has the form file:///absolute/path")
		}
	case u.Scheme == "ssh":
		return Address{}, fmt.Errorf("write git::%s for a repository over SSH", place)
	default:
		return Address{}, fmt.Errorf("nothing here can fetch %q from a %q address", getter, u.Scheme)
	}
	if a.getter != "file" && u.Host == "" && u.Scheme != "file" {
		return Address{}, errors.New("its URL has no host")
	}
	if strings.HasPrefix(u.Hostname(), "-") {
		return Address{}, errors.New("its host begins with a dash")
	}
	if _, _, err := checksum(u); err != nil {
		return Address{}, err
	}
	if implied == "git" && getter == "git" && strings.HasPrefix(place, "git://") {
		a.Package = place
	}
	if named && a.getter != "git" {
		a.Package = getter + "::" + place // Terraform's manifest has it
	}
	a.Text = withSubdir(a.Package, sub)
	return a, nil
}

// locate finds the URL that an address stands for, who fetches it unless it
// says so itself, and a folder that was part of a short form.
func locate(getter, pkg string) (place, implied, sub string, err error) {
	switch {
	case strings.HasPrefix(pkg, "/"):
		return "file://" + pkg, "file", "", nil
	case strings.HasPrefix(pkg, "github.com/"), strings.HasPrefix(pkg, "bitbucket.org/"):
		return shortHost(pkg)
	}
	if scheme, _, ok := strings.Cut(pkg, "://"); ok && !strings.ContainsAny(scheme, "@/?") {
		return pkg, strings.ToLower(scheme), "", nil
	}
	base, query, asked := strings.Cut(pkg, "?")
	if m := scpLike.FindStringSubmatch(base); m != nil && (getter == "git" || m[1] == "git") {
		host := m[2]
		if m[1] != "" {
			host = m[1] + "@" + host
		}
		place = "ssh://" + host + "/" + m[3]
		if asked {
			place += "?" + query
		}
		return place, "git", "", nil
	}
	return "", "", "", errNotRemote
}

// shortHost reads github.com/OWNER/REPOSITORY and its like.
func shortHost(pkg string) (place, implied, sub string, err error) {
	base, query, asked := strings.Cut(pkg, "?")
	parts := strings.Split(base, "/")
	if len(parts) < 3 || parts[1] == "" || parts[2] == "" {
		return "", "", "", fmt.Errorf("a repository there is written as %s/OWNER/REPOSITORY", parts[0])
	}
	place = "https://" + strings.Join(parts[:3], "/")
	if !strings.HasSuffix(place, ".git") {
		place += ".git"
	}
	if asked {
		place += "?" + query
	}
	return place, "git", strings.Join(parts[3:], "/"), nil
}

// unsupported names what to use in place of what Terraform could fetch.
func unsupported(getter, rest string) error {
	base, _, _ := strings.Cut(rest, "?")
	switch {
	case getter == "s3", strings.HasPrefix(rest, "s3://"), getter == "" && strings.Contains(base, ".amazonaws.com/"):
		return errors.New("modules from S3 buckets are not supported; use a signed https:// URL of the archive, a git repository or a registry")
	case getter == "gcs", strings.HasPrefix(rest, "gs://"), getter == "" && strings.HasPrefix(base, "www.googleapis.com/storage/"):
		return errors.New("modules from Google Cloud Storage are not supported; use a signed https:// URL of the archive, a git repository or a registry")
	case getter == "hg":
		return errors.New("modules from Mercurial repositories are not supported; use a git repository, or an archive over https://")
	case getter == "oci", strings.HasPrefix(rest, "oci://"):
		return errors.New("modules from OCI registries are not supported; use a module registry, a git repository, or an archive over https://")
	}
	return nil
}

// checkGit refuses what git could take for an option, and arguments that it
// has no use for.
func checkGit(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("its arguments after ? cannot be read: %s", urlCause(err))
	}
	if ref := query.Get("ref"); strings.HasPrefix(ref, "-") {
		return errors.New("its ref begins with a dash, which git would take for an option")
	}
	if strings.HasPrefix(u.Path, "-") || strings.HasPrefix(u.Opaque, "-") || u.User != nil && strings.HasPrefix(u.User.Username(), "-") {
		return errors.New("a part of it begins with a dash, which git would take for an option")
	}
	if query.Has("sshkey") {
		return errors.New("a private key does not belong into a source address, which is stored; let the SSH agent or ~/.ssh/config name the key")
	}
	if depth := query.Get("depth"); depth != "" && !positive(depth) {
		return fmt.Errorf("its depth %q is not a number from 1 on", depth)
	}
	return nil
}

func positive(text string) bool {
	return len(text) < 10 && strings.Trim(text, "0123456789") == "" && strings.Trim(text, "0") != ""
}

// urlCause is the reason in an error of package net/url, without the URL.
func urlCause(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}
