package source

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text, kind, normal, pkg, sub string
	}{
		{"./x", "folder", "./x", "", ""},
		{"./x/../y/", "folder", "./y", "", ""},
		{"../x", "folder", "../x", "", ""},
		{"./", "folder", "./", "", ""},
		{"../", "folder", "./..", "", ""},
		{"./..", "folder", "./..", "", ""},
		{"../..", "folder", "../..", "", ""},
		{"./../x", "folder", "../x", "", ""},
		{`.\x\y`, "folder", "./x/y", "", ""},
		{"./.hidden", "folder", "./.hidden", "", ""},
		{"./..x", "folder", "./..x", "", ""},
		{"./x?ref=1", "folder", "./x?ref=1", "", ""},
		{"library//local-training", "library", "library//local-training", "library//local-training", ""},
		{"hashicorp/consul/aws", "registry", "registry.terraform.io/hashicorp/consul/aws", "registry.terraform.io/hashicorp/consul/aws", ""},
		{"hashicorp/consul/aws//a/../b", "registry", "registry.terraform.io/hashicorp/consul/aws//b", "registry.terraform.io/hashicorp/consul/aws", "b"},
		{"example.com/a/b/c", "registry", "example.com/a/b/c", "example.com/a/b/c", ""},
		{"127.0.0.1:8443/a/b/c", "registry", "127.0.0.1:8443/a/b/c", "127.0.0.1:8443/a/b/c", ""},
		{"github.com/a/b", "git", "git::https://github.com/a/b.git", "git::https://github.com/a/b.git", ""},
		{"github.com/a/b.git?ref=v1", "git", "git::https://github.com/a/b.git?ref=v1", "git::https://github.com/a/b.git?ref=v1", ""},
		{"github.com/a/b//c?ref=v1", "git", "git::https://github.com/a/b.git//c?ref=v1", "git::https://github.com/a/b.git?ref=v1", "c"},
		{"github.com/a/b/c", "git", "git::https://github.com/a/b.git//c", "git::https://github.com/a/b.git", "c"},
		{"github.com/a/b/c//d", "git", "git::https://github.com/a/b.git//c/d", "git::https://github.com/a/b.git", "c/d"},
		{"bitbucket.org/a/b", "git", "git::https://bitbucket.org/a/b.git", "git::https://bitbucket.org/a/b.git", ""},
		{"git@github.com:a/b.git//c?ref=v1", "git", "git::ssh://git@github.com/a/b.git//c?ref=v1", "git::ssh://git@github.com/a/b.git?ref=v1", "c"},
		{"git@example.com:/srv/x.git", "git", "git::ssh://git@example.com/srv/x.git", "git::ssh://git@example.com/srv/x.git", ""},
		{"git::me@example.com:x", "git", "git::ssh://me@example.com/x", "git::ssh://me@example.com/x", ""},
		{"git::ssh://git@example.com:2222/x.git", "git", "git::ssh://git@example.com:2222/x.git", "git::ssh://git@example.com:2222/x.git", ""},
		{"git::https://example.com/x.git//a?ref=1&depth=1", "git", "git::https://example.com/x.git//a?ref=1&depth=1", "git::https://example.com/x.git?ref=1&depth=1", "a"},
		{"git::file:///srv/x", "git", "git::file:///srv/x", "git::file:///srv/x", ""},
		{"git::/srv/x", "git", "git::file:///srv/x", "git::file:///srv/x", ""},
		{"git::github.com/a/b", "git", "git::https://github.com/a/b.git", "git::https://github.com/a/b.git", ""},
		{"git://example.com/x", "git", "git://example.com/x", "git://example.com/x", ""},
		{"https://example.com/x.zip", "http", "https://example.com/x.zip", "https://example.com/x.zip", ""},
		{"https://example.com/x.zip//a?checksum=md5:d41d8cd98f00b204e9800998ecf8427e", "http", "https://example.com/x.zip//a?checksum=md5:d41d8cd98f00b204e9800998ecf8427e",
			"https://example.com/x.zip?checksum=md5:d41d8cd98f00b204e9800998ecf8427e", "a"},
		{"https://example.com/x?u=a//b", "http", "https://example.com/x?u=a//b", "https://example.com/x?u=a//b", ""},
		{"http::https://example.com/x//a", "http", "http::https://example.com/x//a", "http::https://example.com/x", "a"},
		{"file::/srv/modules/x", "file", "file::file:///srv/modules/x", "file::file:///srv/modules/x", ""},
		{"/srv/modules/x", "file", "file:///srv/modules/x", "file:///srv/modules/x", ""},
		{"file:///srv/modules//x", "file", "file:///srv/modules//x", "file:///srv/modules", "x"},
	}
	for _, test := range tests {
		a, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		kind := map[Kind]string{Folder: "folder", Library: "library", Published: "registry", Remote: a.getter}[a.Kind]
		if kind != test.kind || a.Text != test.normal || a.Package != test.pkg || a.Subdir != test.sub {
			t.Errorf("%s: %s %q, package %q, folder %q", test.text, kind, a.Text, a.Package, a.Subdir)
		}
		again, err := Parse(a.Text)
		if err != nil || again.Text != a.Text || again.Package != a.Package || again.Subdir != a.Subdir {
			t.Errorf("%s: %q is not its normal form: %q, %v", test.text, a.Text, again.Text, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := map[string]string{
		"":                                      "empty",
		"foo":                                   `write "./foo"`,
		"foo/bar":                               `write "./foo/bar"`,
		"foo//bar":                              "if it is a folder",
		".":                                     `write "./."`,
		"..":                                    `write "./.."`,
		" ./x":                                  "if it is a folder",
		"~/x":                                   "if it is a folder",
		"a/b/c/d/e":                             "three or four",
		"gitlab.com/a/b":                        "three more components",
		"hashicorp/consul/aws?ref=1":            "query",
		"hashicorp/consul/aws//../x":            "outside of the fetched package",
		"github.com/x":                          "github.com/OWNER/REPOSITORY",
		"git::https://example.com/x//a/../../b": "outside of the fetched package",
		"git::https://example.com/x//..":        "outside of the fetched package",
		"git::http://[bad":                      "not a valid URL",
		"git::ssh://host:me/x":                  "not a valid URL",
		"git::ext::sh -c touch% /tmp/x":         "",
		"git::ext://x":                          `over "ext"`,
		"git::https://example.com/x?ref=--upload":            "begins with a dash",
		"git::https://example.com/x?ref=%2dx":                "begins with a dash",
		"git::ssh://-oProxyCommand=x/y":                      "begins with a dash",
		"git::ssh://-l@host/y":                               "begins with a dash",
		"git::https://example.com/x?depth=-1":                "not a number",
		"git::ssh://h/x?sshkey=c2VjcmV0":                     "private key",
		"git::https:///x":                                    "no host",
		"ssh://git@example.com/x":                            "write git::ssh://",
		"s3::https://s3.amazonaws.com/b/x.zip":               "S3",
		"bucket.s3.amazonaws.com/x.zip":                      "S3",
		"gcs::https://www.googleapis.com/storage/v1/b/x.zip": "Cloud Storage",
		"hg::https://example.com/x":                          "Mercurial",
		"oci://example.com/x":                                "OCI",
		"ftp://example.com/x.zip":                            `"ftp"`,
		"file://host/x":                                      "file:///absolute/path",
		"library//":                                          "library//NAME",
		"library//a/b":                                       "library//NAME",
		"library//..":                                        "library//NAME",
		"https://example.com/x.zip?checksum=crc:12":          "none of the types",
		"https://example.com/x.zip?checksum=sha256:12":       "64 hexadecimal digits",
		"https://example.com/x.zip?checksum=file:x":          "from a file",
		"./x\x00":                        "control character",
		"./" + strings.Repeat("x", 5000): "4096",
		"C:\\x":                          "if it is a folder",
	}
	for text, want := range tests {
		a, err := Parse(text)
		if err == nil {
			t.Errorf("%q was read as %+v", text, a)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, without %q", text, err, want)
		}
	}
}

func TestRedacted(t *testing.T) {
	for text, want := range map[string]string{
		"git::https://me:s3cret@example.com/x.git//a?ref=1":      "git::https://me:xxxxx@example.com/x.git//a?ref=1",
		"git::https://s3cret@example.com/x.git":                  "git::https://xxxxx@example.com/x.git",
		"git::https://:s3cret@example.com/x.git":                 "git::https://:xxxxx@example.com/x.git",
		"git::ssh://git@example.com/x.git":                       "git::ssh://git@example.com/x.git",
		"git@example.com:a/x.git":                                "git::ssh://git@example.com/a/x.git",
		"https://example.com/x.zip?X-Amz-Signature=s3cret&a=b":   "https://example.com/x.zip?X-Amz-Signature=xxxxx&a=b",
		"https://example.com/x.zip?a=b&private_token=s3cret":     "https://example.com/x.zip?a=b&private_token=xxxxx",
		"https://example.com/x.zip?%74oken=s3cret":               "https://example.com/x.zip?%74oken=xxxxx",
		"https://example.com/x.zip?sig=s3cret&checksum=" + noSum: "https://example.com/x.zip?sig=xxxxx&checksum=" + noSum,
	} {
		a, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := a.Redacted(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

const noSum = "00000000000000000000000000000000"

func FuzzParse(f *testing.F) {
	for _, text := range []string{"./x", "a/b/c", "library//x", "git@github.com:a/b.git//c?ref=v1", "git::ssh://-x/y", "https://e.com//x?a=//", "github.com/a/b/c//d", "file:///a//../b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an empty message")
			}
			return
		}
		if a.Subdir == ".." || strings.HasPrefix(a.Subdir, "../") || strings.HasPrefix(a.Subdir, "/") {
			t.Fatalf("%q leaves its package: %q", text, a.Subdir)
		}
		if a.url != nil && strings.HasPrefix(a.url.Host, "-") {
			t.Fatalf("%q has the host %q", text, a.url.Host)
		}
		again, err := Parse(a.Text)
		if err != nil || again.Text != a.Text || again.Package != a.Package || again.Subdir != a.Subdir || again.Kind != a.Kind {
			t.Fatalf("%q became %q, which becomes %q (%v)", text, a.Text, again.Text, err)
		}
	})
}
