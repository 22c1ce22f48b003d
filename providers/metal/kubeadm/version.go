package kubeadm

import (
	"fmt"
	"strconv"

	"github.com/stokehq/stoke/runtime/pattern"
)

// The minors of Kubernetes 1 that are supported, and the one to take where
// nobody asks for another.
const (
	OldestMinor  Minor = 35
	DefaultMinor Minor = 36
	NewestMinor  Minor = 37
)

// Minor is a minor of Kubernetes 1: 36 is "1.36".
type Minor int

func (m Minor) String() string { return fmt.Sprintf("1.%d", int(m)) }

// Release is a release of Kubernetes 1, such as 1.36.3.
type Release struct {
	Minor Minor
	Patch int
}

// String is the release without a v: "1.36.3".
func (r Release) String() string { return fmt.Sprintf("%s.%d", r.Minor, r.Patch) }

var (
	minorForm   = pattern.New(`^v?1\.(0|[1-9][0-9]{0,3})$`)
	releaseForm = pattern.New(`^v?1\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)
	apiForm     = pattern.New(`^v1\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})`) // whatever a build adds to it
)

// ParseMinor reads a supported minor, such as "1.36".
func ParseMinor(text string) (Minor, error) {
	f := minorForm.FindStringSubmatch(text)
	if f == nil {
		return 0, fmt.Errorf("%q is not a minor of Kubernetes: write one such as %s", text, DefaultMinor)
	}
	return supported(text, f[1])
}

// ParseRelease reads a release of a supported minor, such as "1.36.3" or
// "v1.36.3".
func ParseRelease(text string) (Release, error) {
	f := releaseForm.FindStringSubmatch(text)
	if f == nil {
		return Release{}, fmt.Errorf("%q is not a release of Kubernetes: write one such as %s.3", text, DefaultMinor)
	}
	minor, err := supported(text, f[1])
	patch, _ := strconv.Atoi(f[2]) // digits, and few
	return Release{minor, patch}, err
}

func supported(text, digits string) (Minor, error) {
	n, _ := strconv.Atoi(digits)
	if m := Minor(n); m >= OldestMinor && m <= NewestMinor {
		return m, nil
	}
	return 0, fmt.Errorf("%q is not supported: take %s to %s", text, OldestMinor, NewestMinor)
}

// oldestKubelet is how many minors older than the API server a kubelet may be, by the
// version skew policy of Kubernetes.
const oldestKubelet = 3

// Skew tells why a kubelet of one release must not join an API server of another; ""
// where it may. A server's release that cannot be read is no reason.
func Skew(kubelet, server string) string {
	k, s := releaseForm.FindStringSubmatch(kubelet), apiForm.FindStringSubmatch(server)
	if k == nil || s == nil {
		return ""
	}
	const say = "The kubelet would be %s, and the API server is %s: %s. Give the version of the cluster, which its attribute join has"
	minor, _ := strconv.Atoi(k[1]) // digits, and few
	serves, _ := strconv.Atoi(s[1])
	switch {
	case minor > serves:
		return fmt.Sprintf(say, kubelet, server, "a kubelet must not be of a newer minor")
	case minor < serves-oldestKubelet:
		return fmt.Sprintf(say, kubelet, server, fmt.Sprintf("a kubelet may be %d minors older, and no more", oldestKubelet))
	}
	return ""
}
