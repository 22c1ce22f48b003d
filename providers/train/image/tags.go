package image

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// wheelName is a wheel's file name as PEP 427 writes it: distribution, version,
// perhaps a build number, and the tags of Python, ABI and platform.
type wheelName struct {
	distribution, version    string
	pythons, abis, platforms []string
}

var (
	wheelText   = pattern.New(`^([A-Za-z0-9._]+)-([A-Za-z0-9._+!]+)(?:-([0-9][A-Za-z0-9._]*))?-([a-z0-9_.]+)-([a-z0-9_.]+)-([a-z0-9_.]+)\.whl$`)
	separators  = pattern.New(`[-_.]+`)
	pythonTag   = pattern.New(`^(py|cp)3([0-9]{0,2})$`)
	platformTag = pattern.New(`^(?:manylinux(?:1|2010|2014|_[0-9]+_[0-9]+)|musllinux_[0-9]+_[0-9]+|linux)_([a-z0-9_]+)$`)
)

func parseWheelName(file string) (wheelName, error) {
	m := wheelText.FindStringSubmatch(file)
	if m == nil {
		return wheelName{}, fmt.Errorf("its name is not a wheel's name: NAME-VERSION-PYTHON-ABI-PLATFORM.whl")
	}
	return wheelName{m[1], m[2], strings.Split(m[4], "."), strings.Split(m[5], "."), strings.Split(m[6], ".")}, nil
}

// normal is the distribution as PEP 503 compares it.
func (n wheelName) normal() string {
	return strings.ToLower(separators.ReplaceAllString(n.distribution, "-"))
}

// fits tells whether CPython of a version such as 3.12 can use the wheel on a
// processor, by Go's name. Which C library the image has is not known here:
// manylinux and musllinux both pass.
func (n wheelName) fits(python, processor string) error {
	minor, err := strconv.Atoi(strings.TrimPrefix(python, "3."))
	if err != nil {
		return fmt.Errorf("%q is not a version of Python", python)
	}
	if !slices.ContainsFunc(n.platforms, func(tag string) bool { return platformFits(tag, processor) }) {
		return fmt.Errorf("it is for %s, and the image for linux/%s", strings.Join(n.platforms, ", "), processor)
	}
	for _, tag := range n.pythons {
		for _, abi := range n.abis {
			if pythonFits(tag, abi, minor) {
				return nil
			}
		}
	}
	return fmt.Errorf("it is for %s (ABI %s), and the image has Python %s", strings.Join(n.pythons, ", "), strings.Join(n.abis, ", "), python)
}

func platformFits(tag, processor string) bool {
	if tag == "any" {
		return true
	}
	m := platformTag.FindStringSubmatch(tag)
	return m != nil && m[1] == map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[processor]
}

func pythonFits(tag, abi string, minor int) bool {
	m := pythonTag.FindStringSubmatch(tag)
	if m == nil {
		return false
	}
	since := 0
	if m[2] != "" {
		since, _ = strconv.Atoi(m[2]) // digits
	}
	switch abi {
	case "none":
		if m[1] == "cp" && m[2] != "" {
			return since == minor
		}
		return since <= minor
	case "abi3":
		return m[1] == "cp" && since <= minor
	}
	return m[1] == "cp" && since == minor && abi == fmt.Sprintf("cp3%d", minor)
}
