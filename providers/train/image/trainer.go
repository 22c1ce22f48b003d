package image

import (
	"debug/elf"
	"errors"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// machines are the processors that there are trainers for, by Go's names.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// CheckTrainer refuses, as *Mistake, a binary that would not start in the image: one for
// another platform, or one that needs libraries which the image may not have.
func CheckTrainer(name string, platform v1.Platform) error {
	const (
		summary = "The trainer does not fit the image"
		remedy  = "Build one with CGO_ENABLED=0 GOOS=linux GOARCH=%s go build ./cmd/stoke-trainer, and name it with trainer = \"…\"."
	)
	f, err := elf.Open(name)
	if err != nil {
		var file *fs.PathError
		if errors.As(err, &file) {
			return mistake("trainer", "", "The trainer cannot be read", "%s: %s.", name, file.Err)
		}
		return mistake("trainer", "", summary, "%s is no program for Linux. "+remedy, name, platform.Architecture)
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != machines[platform.Architecture] || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return mistake("trainer", "", summary, "%s is for %s, and the image for %s. "+remedy, name, f.Machine, platform, platform.Architecture)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return mistake("trainer", "", summary, "%s is linked with libraries that the image may not have. "+remedy, name, platform.Architecture)
		}
	}
	return nil
}
