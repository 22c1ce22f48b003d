package slot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
)

// inFolder, in the environment of the test's own program, makes it a process that
// takes a slot in that folder and keeps it until its input ends.
const (
	inFolder = "STOKE_SLOT_TEST_FOLDER"
	ofGPUs   = "STOKE_SLOT_TEST_GPUS"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(inFolder); folder != "" {
		syscall.Umask(0o077)
		n, _ := strconv.Atoi(os.Getenv(ofGPUs))
		log := slog.New(slog.NewTextHandler(os.Stdout, nil))
		s, err := Take(context.Background(), gpus(n), Options{Run: "run of " + strconv.Itoa(os.Getpid()), Folder: folder, Log: log})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		io.Copy(io.Discard, os.Stdin)
		s.Release()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// gpus are the devices of a machine with n of them.
func gpus(n int) (all []engine.Device) {
	for i := range n {
		all = append(all, engine.Device{Index: i, UUID: fmt.Sprintf("GPU-%04d", i)})
	}
	return all
}

// member is a process that takes a slot.
type member struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Closer
	said *bufio.Scanner
}

func start(t *testing.T, folder string, gpus int) *member {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), inFolder+"="+folder, ofGPUs+"="+strconv.Itoa(gpus))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &member{t, cmd, in, bufio.NewScanner(out)}
}

// expect reads the process's next line, which has all of these parts.
func (m *member) expect(parts ...string) {
	m.t.Helper()
	if !m.said.Scan() {
		m.t.Fatalf("process %d says nothing more: %v", m.cmd.Process.Pid, m.said.Err())
	}
	for _, part := range parts {
		if !strings.Contains(m.said.Text(), part) {
			m.t.Fatalf("process %d says %s, without %q", m.cmd.Process.Pid, m.said.Text(), part)
		}
	}
}

// note is the part of a line about the process.
func (m *member) note() string {
	return fmt.Sprintf(`run \"run of %d\", process %[1]d`, m.cmd.Process.Pid)
}

// A second process waits, names the holder, and takes the slot as soon as the
// holder has ended, in whatever way.
func TestOneSlotOfTwoProcesses(t *testing.T) {
	for name, end := range map[string]func(*member){
		"killed": func(m *member) { m.cmd.Process.Kill() },
		"ended":  func(m *member) { m.in.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "slots")
			first := start(t, folder, 1)
			first.expect("took a GPU", "gpu=0", "uuid=GPU-0000")
			second := start(t, folder, 1)
			second.expect("waiting for a GPU", "GPU 0: "+first.note())
			end(first)
			second.expect("took a GPU", "gpu=0")
		})
	}
}

// Each process has a GPU of its own, and a process that waits takes the first that
// becomes free.
func TestSlotsOfTwoGPUs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "slots")
	first, second := start(t, folder, 2), (*member)(nil)
	first.expect("took a GPU", "gpu=0")
	second = start(t, folder, 2)
	second.expect("took a GPU", "gpu=1")
	third := start(t, folder, 2)
	third.expect("waiting for a GPU", "GPU 0: "+first.note(), "GPU 1: "+second.note())
	second.cmd.Process.Kill()
	third.expect("took a GPU", "gpu=1")
}

func take(ctx context.Context, folder string, d ...engine.Device) (*Slot, error) {
	return Take(ctx, d, Options{Run: "a run", Folder: folder, Log: slog.New(slog.DiscardHandler)})
}

func TestContextEndsTheWait(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "slots")
	s, err := take(t.Context(), folder, gpus(1)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("asked to leave")
	cancel(why)
	if _, err := take(ctx, folder, gpus(1)...); !errors.Is(err, why) || !strings.Contains(err.Error(), `run "a run"`) {
		t.Errorf("the wait ends with %v", err)
	}
	s.Release()
	s.Release()
	if s, err = take(t.Context(), folder, gpus(1)...); err != nil {
		t.Fatalf("a released slot: %v", err)
	}
	s.Release()
	if _, err := take(t.Context(), folder); err == nil {
		t.Error("took a slot of no device")
	}
}

// The UUID is the device, whatever number a process gives it.
func TestUUIDIsTheDevice(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "slots")
	s, err := take(t.Context(), folder, engine.Device{Index: 3, UUID: "GPU-a/../b"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := take(ended, folder, engine.Device{Index: 0, UUID: "GPU-a/../b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the same device has two slots: %v", err)
	}
	other, err := take(ended, folder, engine.Device{Index: 3, UUID: "GPU-c"})
	if err != nil {
		t.Fatalf("another device: %v", err)
	}
	other.Release()
}

// Folder and files are for all users of the machine, whatever the umask is.
func TestModes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "slots")
	start(t, folder, 1).expect("took a GPU")
	for name, want := range map[string]fs.FileMode{folder: fs.ModeDir | fs.ModeSticky | 0o777, filepath.Join(folder, "gpu-GPU-0000"): 0o666} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if place := Folder(); !strings.HasSuffix(place, folderName) || !filepath.IsAbs(place) {
		t.Errorf("the slots of this machine are in %s", place)
	}
}

// Another user cannot have a process write into a file of its own.
func TestPlantedFiles(t *testing.T) {
	const text = "precious"
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	inside := filepath.Join("..", "victim")
	for name, plant := range map[string]func(folder, file string) error{
		"symlink out":      func(_, file string) error { return os.Symlink(victim, file) },
		"relative symlink": func(_, file string) error { return os.Symlink(inside, file) },
		"symlink inside": func(folder, file string) error {
			return errors.Join(os.WriteFile(filepath.Join(folder, "gpu-other"), nil, 0o666), os.Symlink("gpu-other", file))
		},
		"dangling":  func(_, file string) error { return os.Symlink("nothing", file) },
		"hard link": func(_, file string) error { return os.Link(victim, file) },
		"pipe":      func(_, file string) error { return syscall.Mkfifo(file, 0o666) },
		"folder":    func(_, file string) error { return os.Mkdir(file, 0o777) },
		"linked folder": func(folder, _ string) error {
			return errors.Join(os.Remove(folder), os.Symlink(t.TempDir(), folder))
		},
		"file for the folder": func(folder, _ string) error { return errors.Join(os.Remove(folder), os.WriteFile(folder, nil, 0o666)) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := errors.Join(os.WriteFile(victim, []byte(text), 0o600), os.Mkdir(folder, 0o777), plant(folder, filepath.Join(folder, "gpu-GPU-0000"))); err != nil {
				t.Fatal(err)
			}
			if s, err := take(t.Context(), folder, gpus(1)...); err == nil {
				s.Release()
				t.Error("took a slot")
			} else {
				t.Log(err)
			}
			if got, err := os.ReadFile(victim); err != nil || string(got) != text {
				t.Errorf("the other file has %q, %v", got, err)
			}
		})
	}
}

// A file that was replaced after it was opened is not the slot any longer.
func TestReplacedFile(t *testing.T) {
	dir := t.TempDir()
	folder, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	file, err := openFile(folder, "gpu-0")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := check(folder, "gpu-0", file); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "gpu-0")); err != nil {
		t.Fatal(err)
	}
	if err := check(folder, "gpu-0", file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gpu-0"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := check(folder, "gpu-0", file); !errors.Is(err, errReplaced) {
		t.Errorf("a replaced file: %v", err)
	}
}

// A run that needs several GPUs takes none where the free ones do not suffice: of two runs,
// each of which could hold a part, one gets all.
func TestRunsThatNeedSeveralSlots(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "slots")
	waits := make(map[string]string) // the newest text, by run
	take := func(run string, needs int) *Slot {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := Take(ctx, gpus(4), Options{
			Run: run, Needs: needs, Folder: folder, Log: slog.New(slog.DiscardHandler),
			Waits: func(holders string) {
				if holders != "" {
					waits[run] = holders
					cancel()
				}
			},
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return s
	}
	var a, b []*Slot
	get := func(of *[]*Slot, run string, needs int, want bool) {
		t.Helper()
		s := take(run, needs)
		if (s != nil) != want {
			t.Fatalf("run %s with %d slots got another one: %v", run, len(*of), s != nil)
		}
		if s != nil {
			*of = append(*of, s)
		}
	}
	get(&a, "a", 3, true)
	get(&b, "b", 3, true) // then it has one, and two are free
	get(&b, "b", 3, true)
	get(&a, "a", 3, false) // it has one, and one is free
	if text := waits["a"]; !strings.Contains(text, `run "b", process `) || !strings.HasSuffix(text, "free GPUs: 1; the run needs: 2 more") {
		t.Errorf("run a waits for %s", text)
	}
	var c []*Slot
	get(&c, "c", 2, false)
	get(&b, "b", 3, true)
	get(&a, "a", 3, false)
	b[0].Release() // a worker of b ends: its successor, or a, may have the slot
	get(&a, "a", 3, false)
	get(&b, "b", 3, true)
	for _, s := range b {
		s.Release()
	}
	get(&a, "a", 3, true)
	get(&a, "a", 3, true)
	get(&c, "c", 1, true)
	for _, s := range append(a, c...) {
		s.Release()
	}
}

// A process that has found devices unfit takes one of the others, where its run has all that
// it can have with it. It does not wait for slots of its own run.
func TestUnfitDevicesAreLeftOut(t *testing.T) {
	all := gpus(4)
	for name, c := range map[string]struct {
		holders []string // of the devices, "": none
		unfit   []int
		needs   int
		got     int // index of the device, -1: none
		err     error
	}{
		"fewer than needed are left":           {[]string{"", "x", "x", ""}, []int{0, 1, 2}, 2, 3, nil},
		"another run has some of the others":   {[]string{"", "x", "x", ""}, []int{0}, 2, -1, context.Canceled},
		"an unfit one is in use by the run":    {[]string{"a", "a", "", "x"}, []int{0}, 3, 2, nil},
		"an unfit one is in use by another":    {[]string{"x", "a", "", "x"}, []int{0}, 3, -1, context.Canceled},
		"the run has all others":               {[]string{"", "a", "a", "a"}, []int{0}, 2, -1, ErrOwn},
		"the run has all, the unfit one too":   {[]string{"a", "a", "a", "a"}, []int{0}, 4, -1, ErrOwn},
		"the run and another have all others":  {[]string{"", "a", "x", "a"}, []int{0}, 2, -1, context.Canceled},
		"the run has all, and none is unfit":   {[]string{"a", "a", "a", "a"}, nil, 4, -1, context.Canceled},
		"fewer devices than needed, all fit":   {[]string{"", "", "", ""}, nil, 5, -1, context.Canceled},
		"fewer devices than needed, one unfit": {[]string{"", "", "", ""}, []int{2}, 5, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "slots")
			o := Options{Folder: folder, Log: slog.New(slog.DiscardHandler)}
			for i, run := range c.holders {
				if o.Run = run; run == "" {
					continue
				}
				s, err := Take(t.Context(), all[i:i+1], o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Release()
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o.Run, o.Needs, o.Waits = "a", c.needs, func(holders string) {
				if holders != "" {
					cancel()
				}
			}
			var devices []engine.Device
			for i, d := range all {
				if slices.Contains(c.unfit, i) {
					o.Unfit = append(o.Unfit, d)
				} else {
					devices = append(devices, d)
				}
			}
			s, err := Take(ctx, devices, o)
			got := -1
			if s != nil {
				got = s.Device.Index
				s.Release()
			}
			if got != c.got || !errors.Is(err, c.err) {
				t.Errorf("device %d, %v; want %d, %v", got, err, c.got, c.err)
			}
		})
	}
}
