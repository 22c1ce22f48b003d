package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// machines are the processors that there are trainers for, by Go's names.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

const (
	unfit  = "The trainer does not fit the image"
	remedy = "Build one with %s, and name it with %s = \"…\"."
)

// buildOf returns the command that builds the program of an argument.
func buildOf(argument, processor string) string {
	switch argument {
	case "stoke_gpu":
		return "make gpu"
	case "trainer":
		return "CGO_ENABLED=0 GOOS=linux GOARCH=" + processor + " go build ./cmd/stoke-trainer"
	}
	return "CGO_ENABLED=0 GOOS=linux GOARCH=" + processor + " go build -tags gpu ./cmd/stoke-trainer"
}

// CheckTrainer refuses, as *Mistake, a binary that would not start in the image: one for
// another platform, or one that needs libraries which the image may not have.
func CheckTrainer(name string, platform v1.Platform) error {
	dynamic, err := checkProgram("trainer", name, platform)
	if err == nil && dynamic {
		return mistake("trainer", "", unfit, "%s is linked with libraries that the image may not have. "+remedy,
			name, buildOf("trainer", platform.Architecture), "trainer")
	}
	return err
}

// checkProgram refuses a trainer that is not a program for the platform. It reports
// whether the program needs libraries.
func checkProgram(argument, name string, platform v1.Platform) (dynamic bool, err error) {
	unfit, remedy := unfit, fmt.Sprintf(remedy, buildOf(argument, platform.Architecture), argument)
	if argument == "stoke_gpu" {
		unfit = "stoke-gpu does not fit the image"
	}
	f, err := elf.Open(name)
	if err != nil {
		var file *fs.PathError
		if errors.As(err, &file) {
			return false, mistake(argument, "", "The program cannot be read", "%s: %s.", name, file.Err)
		}
		return false, mistake(argument, "", unfit, "%s is not a program for Linux. %s", name, remedy)
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != machines[platform.Architecture] || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return false, mistake(argument, "", unfit, "%s is for %s, and the image for %s. %s", name, f.Machine, platform, remedy)
	}
	return isDynamic(f), nil
}
