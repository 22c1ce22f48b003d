package image

import (
	"fmt"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stokehq/stoke/runtime/pattern"
)

const (
	// TrainerPath is where the trainer lies in every image.
	TrainerPath = "/usr/local/bin/stoke-trainer"
	// DefaultUser is a user and a group that are not root: the level restricted
	// of Kubernetes' Pod Security asks for a number other than 0.
	DefaultUser = "65532:65532"
	// DefaultPlatform does not depend on the machine that builds, so that the
	// digest does not either.
	DefaultPlatform = "linux/amd64"
	// LabelVersion is the image's label with the trainer's version.
	LabelVersion = "dev.stoke.trainer.version"

	labelPrefix = "dev.stoke."
	searchPath  = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Spec says what an image consists of, apart from its base.
type Spec struct {
	Platform       v1.Platform
	Trainer        string            // path of the binary on this machine
	TrainerVersion string            // as its label says
	GPUTrainer     string            `json:",omitempty"` // path of the trainer with the engine of GPUs; "" for an image without it
	StokeGPU       string            `json:",omitempty"` // path of stoke-gpu, which reads GPUs; "" for none
	GPUFiles       string            `json:",omitempty"` // folder that becomes GPUFolder; "" for none
	Files          map[string]string // path in the image → file or folder here
	Wheels         string            // folder of *.whl; "" for none
	Python         string            // version of the image's Python, such as 3.12
	SitePackages   string            // where wheels go; "" for the default of Python
	Environment    map[string]string
	WorkingDir     string   // "" keeps the base's
	Entrypoint     []string // nil is the trainer
	Command        []string // nil is none
	User           string   // UID or UID:GID; "" is DefaultUser
	Labels         map[string]string
}

// Mistake is an input that cannot be used, for people: which argument, and what
// to do about it.
type Mistake struct {
	Argument string // as it is called in a Spec, in snake case
	Key      string // of an argument that is a map; "" for all of it
	Summary  string
	Detail   string
}

func (m *Mistake) Error() string { return m.Summary + ": " + m.Detail }

func mistake(argument, key, summary, format string, args ...any) *Mistake {
	return &Mistake{argument, key, summary, fmt.Sprintf(format, args...)}
}

// ParsePlatform reads linux/amd64 or linux/arm64: those that there are trainers for.
func ParsePlatform(text string) (v1.Platform, error) {
	system, processor, _ := strings.Cut(text, "/")
	if _, ok := machines[processor]; system != "linux" || !ok {
		return v1.Platform{}, mistake("platform", "", "Unknown platform", "platform is linux/amd64 or linux/arm64; it is %q.", text)
	}
	return v1.Platform{OS: system, Architecture: processor}, nil
}

var (
	userText     = pattern.New(`^(0|[1-9][0-9]{0,9})(:(0|[1-9][0-9]{0,9}))?$`)
	variableName = pattern.New(`^[^=\x00]+$`)
	pythonText   = pattern.New(`^3\.[1-9]?[0-9]$`)
)

// Check refuses what no image can have. It touches no file.
func (s *Spec) Check() error {
	for _, check := range []func() error{s.checkFiles, s.checkPython, s.checkProcess} {
		if err := check(); err != nil {
			return err
		}
	}
	for name, value := range s.Labels {
		if strings.HasPrefix(name, labelPrefix) || name == "" || strings.ContainsRune(name+value, 0) {
			return mistake("labels", name, "Label cannot be used", "Names that begin with %s are reserved for stoke; a name is not empty, and nothing holds a zero byte.", labelPrefix)
		}
	}
	return nil
}

func (s *Spec) checkFiles() error {
	for to, from := range s.Files {
		if _, err := cleanImagePath(to); err != nil {
			return mistake("files", to, "Path in the image is malformed", "%q: %s.", to, err)
		}
		if from == "" || strings.ContainsRune(from, 0) {
			return mistake("files", to, "Path of a file is malformed", "Name the file or folder of this machine for %s.", to)
		}
	}
	return nil
}

func (s *Spec) checkPython() error {
	switch {
	case s.Wheels == "" && s.Python != "":
		return mistake("python", "", "Argument python has no use", "It selects the Python version of the wheels. Remove it, or name the folder of the wheels: wheels = \"…\".")
	case s.Wheels == "" && s.SitePackages != "":
		return mistake("site_packages", "", "Argument site_packages has no use", "It is the folder for unpacked wheels. Remove it, or name the folder of the wheels: wheels = \"…\".")
	case s.Wheels == "":
		return nil
	case !pythonText.MatchString(s.Python):
		return mistake("python", "", "Version of Python is missing", "Say which Python the base image has, such as python = \"3.12\"; it is %q.", s.Python)
	}
	if s.SitePackages != "" {
		if _, err := cleanImagePath(s.SitePackages); err != nil {
			return mistake("site_packages", "", "Path in the image is malformed", "%q: %s.", s.SitePackages, err)
		}
	}
	return nil
}

func (s *Spec) checkProcess() error {
	for name, value := range s.Environment {
		if !variableName.MatchString(name) || strings.ContainsRune(value, 0) {
			return mistake("environment", name, "Variable cannot be set", "A name is not empty and has no =, and nothing holds a zero byte.")
		}
	}
	if s.WorkingDir != "" && !path.IsAbs(s.WorkingDir) {
		return mistake("working_dir", "", "Path in the image is malformed", "%q does not begin with a slash.", s.WorkingDir)
	}
	if s.User != "" && !userText.MatchString(s.User) {
		return mistake("user", "", "User is no number", "Kubernetes recognises root only by its number: give UID or UID:GID, such as %s; it is %q.", DefaultUser, s.User)
	}
	if s.Entrypoint != nil && len(s.Entrypoint) == 0 {
		return mistake("entrypoint", "", "Entrypoint is empty", "Leave it out: the image then starts the trainer.")
	}
	return nil
}

// Root reports whether the image's process would be root.
func (s *Spec) Root() bool { return s.User == "0" || strings.HasPrefix(s.User, "0:") }

// cleanImagePath cleans a path in the image, and returns it without the first slash;
// "" is the image's root.
func cleanImagePath(name string) (string, error) {
	switch {
	case !strings.HasPrefix(name, "/"):
		return "", fmt.Errorf("a path in the image begins with a slash")
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("a path cannot hold a zero byte")
	}
	for part := range strings.SplitSeq(name, "/") {
		if err := usable(part); err != nil {
			return "", err
		}
	}
	return strings.TrimPrefix(path.Clean(name), "/"), nil
}

// usable refuses names that mean something else in a layer.
func usable(part string) error {
	switch {
	case part == "..":
		return fmt.Errorf("a path in the image has no part \"..\"")
	case strings.HasPrefix(part, ".wh."):
		return fmt.Errorf("names that begin with .wh. delete files of the layers below")
	}
	return nil
}
