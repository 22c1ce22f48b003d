package nvidia

import (
	"fmt"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

var cudaVersion = pattern.New(`^[1-9][0-9]\.[0-9]{1,2}$`)

// CUDAToolkit returns the source of a version of the CUDA toolkit, such as
// "12.9", and its package: only the toolkit, without a driver. The repository
// is the driver's. Several versions may be installed at the same time.
func CUDAToolkit(version string, have State) (Source, string, error) {
	if !cudaVersion.MatchString(version) {
		return Source{}, "", fmt.Errorf("CUDA %q: a version is two numbers, such as 12.9", version)
	}
	switch have.OS {
	case "debian", "ubuntu":
		return Spec{}.driverSource(have), "cuda-toolkit-" + strings.ReplaceAll(version, ".", "-"), nil
	}
	return Source{}, "", fmt.Errorf("CUDA %s: NVIDIA's repository for %s %s is not known", version, have.OS, have.Release)
}
