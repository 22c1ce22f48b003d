package nvidia

import (
	"os/exec"
	"testing"
)

// TestLook runs the observing script, which changes nothing, where the tests run.
func TestLook(t *testing.T) {
	for _, need := range []string{"dpkg-query", "find", "apt-mark"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("no Debian here: %v", err)
		}
	}
	out, err := exec.Command("sh", "-c", look, "sh", NouveauFile, "/etc/debian_version").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s, err := parse(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s.Files["/etc/debian_version"] == "" || s.Free["/usr"] == 0 {
		t.Errorf("read %+v", s)
	}
}

// TestScripts has a shell read every script.
func TestScripts(t *testing.T) {
	for name, script := range map[string]string{
		"look": look, "initramfs": initramfs, "stop units": stopUnits, "end processes": endProcesses, "unhold": unhold, "hold": hold,
		"autoinstall": autoinstall, "unload": unload, "insert": insert, "enable": enable, "disable": disable, "set unit": setUnit, "said": said,
		"generate": generate, "refresh": refresh, "again": again, "restart containerd": restartContainerd, "absent": absent,
	} {
		if out, err := exec.Command("sh", "-n", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
