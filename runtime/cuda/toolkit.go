package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// XLA finds ptxas by PATH, and libdevice.10.bc by the flag xla_gpu_cuda_data_dir.
// The first was run; the second is XLA's documented way, and was not: where XLA
// was run, libdevice was in /usr/local/cuda. Both are given one folder that is
// laid out as a CUDA toolkit.

// makeToolkit returns a folder with bin/ptxas and nvvm/libdevice/libdevice.10.bc:
// the toolkit that has both, or else a folder of links below dir.
func makeToolkit(dir string, f Files) (string, error) {
	const ptxas, libdevice = "bin/ptxas", "nvvm/libdevice/libdevice.10.bc"
	if root, ok := strings.CutSuffix(f.Ptxas, "/"+ptxas); ok && f.Libdevice == filepath.Join(root, libdevice) {
		return root, nil
	}
	sum := sha256.Sum256([]byte(f.Ptxas + "\x00" + f.Libdevice))
	toolkit := filepath.Join(dir, "toolkit-"+hex.EncodeToString(sum[:8]))
	for name, target := range map[string]string{ptxas: f.Ptxas, libdevice: f.Libdevice} {
		link := filepath.Join(toolkit, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			return "", fmt.Errorf("make a folder of CUDA's tools: %w", err)
		}
		// Another process may link the same file at the same time.
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make a folder of CUDA's tools: %w", err)
		}
		if got, err := os.Readlink(link); err != nil || got != target {
			return "", fmt.Errorf("%s is not a link to %s: remove it", link, target)
		}
	}
	return toolkit, nil
}

// dataFlag names the folder of CUDA's tools in XLA_FLAGS.
const dataFlag = "--xla_gpu_cuda_data_dir="

// userFlags returns XLA_FLAGS without the folder of CUDA's tools, which changes
// no program.
func userFlags() string {
	words := strings.Fields(os.Getenv("XLA_FLAGS"))
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, dataFlag) }), " ")
}

// setEnvironment sets what XLA and the driver read when they start. Values of
// the user's stay.
func setEnvironment(toolkit string, gpu GPU, only bool) error {
	set := map[string]string{}
	bin := filepath.Join(toolkit, "bin")
	if path := os.Getenv("PATH"); !strings.HasPrefix(path+":", bin+":") {
		set["PATH"] = strings.TrimSuffix(bin+":"+path, ":")
	}
	if flags := os.Getenv("XLA_FLAGS"); !strings.Contains(flags, dataFlag) {
		set["XLA_FLAGS"] = strings.TrimSpace(flags + " " + dataFlag + toolkit)
	}
	// XLA writes dozens of lines about its start. That this level leaves them out
	// of this plugin's output was not run.
	if _, ok := os.LookupEnv("TF_CPP_MIN_LOG_LEVEL"); !ok {
		set["TF_CPP_MIN_LOG_LEVEL"] = "1"
	}
	// By UUID, as CUDA numbers GPUs of different models by their speed. A single
	// GPU needs no choice; a choice among several was not run.
	switch {
	case only:
	case gpu.UUID != "":
		set["CUDA_VISIBLE_DEVICES"] = gpu.UUID
	default: // in a sandbox
		set["CUDA_VISIBLE_DEVICES"], set["CUDA_DEVICE_ORDER"] = strconv.Itoa(gpu.Index), "PCI_BUS_ID"
	}
	for name, value := range set {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}
