package program

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// Framework is the library of a program: it decides about TF_CONFIG, the variables of
// JAX and the devices that a rank sees.
type Framework string

// The frameworks that programs are written with.
const (
	Torch      Framework = "torch"
	TensorFlow Framework = "tensorflow"
	JAX        Framework = "jax"
	None       Framework = "none"
)

// Roles of a program's processes.
const (
	Worker    = "worker"
	Server    = "ps"
	Chief     = "chief"
	Evaluator = "evaluator"
)

// Spec is one generation of a program on one machine.
type Spec struct {
	Command     []string       // the program and its arguments, where {{name}} is replaced by a parameter
	Folder      string         // the working folder, an absolute name
	Environment []string       // as of os.Environ: of two equal names the later one counts
	Framework   Framework      // "": None
	Parameters  map[string]any // texts, numbers and truth values by name
	Processes   int            // ranks on this machine
	Devices     []string       // of the machine's member, as CUDA numbers or names them
	Grace       time.Duration  // from SIGTERM to SIGKILL
	Member      Member
	Checkpoints string                      // the folder of checkpoints, "" for none
	Dataset     string                      // the folder of the run's dataset, "" for none
	Resume      string                      // the complete checkpoint to begin with, "" for none
	Logs        string                      // an existing folder: rank-N.log and rank-N.log.1
	Scratch     string                      // an existing folder of this member: parameters and metrics
	Output      func(rank int, line []byte) `json:"-"` // gets each line of the ranks' outputs; nil: it does not
	Sole        bool                        // the calling process starts no processes except generations: all its orphans are theirs
	// Foreign reports a child of the calling process that the program does not own,
	// despite Sole; nil: it owns all.
	Foreign func(pid int) bool `json:"-"`
}

// Member is the place of the machine's ranks in the generation.
type Member struct {
	Run         string
	Name        string // of the member, the same in all generations, such as worker-0
	Generation  int
	Role        string
	Task        int // of the first rank among all processes of the role
	Rank        int // of the first rank
	World       int // all ranks
	Group       int // the machine's member among all members
	Groups      int // all members
	Address     string
	Port        int
	Restarts    int
	MaxRestarts int
	Members     map[string][]string // host:port of each process by role, in the order of tasks; may be empty
}

// StartError reports that a generation cannot be started as it is. Another try
// would fail in the same way, except where Kind is ErrStart.
type StartError struct {
	Kind   error // ErrNotFound and the others below
	What   string
	Advice string
	Err    error // of the system; may be nil
}

// The kinds of a StartError.
var (
	ErrSpec          = errors.New("the program's settings are not valid")
	ErrParameter     = errors.New("a parameter cannot be given to the program")
	ErrNotFound      = errors.New("the command is not found")
	ErrNotExecutable = errors.New("the command cannot be executed")
	ErrFolder        = errors.New("the working folder cannot be used")
	ErrPort          = errors.New("a port cannot be had")
	ErrStart         = errors.New("the machine cannot start the program")
	ErrPlatform      = errors.New("programs run on Linux only")
)

func (e *StartError) Error() string {
	text := e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Advice != "" {
		text += ": " + e.Advice
	}
	return text
}

// Is reports the kind, and Unwrap the system's error.
func (e *StartError) Is(target error) bool { return target == e.Kind }
func (e *StartError) Unwrap() error        { return e.Err }

func specError(format string, args ...any) error {
	return &StartError{Kind: ErrSpec, What: fmt.Sprintf(format, args...)}
}

// validate checks numbers and names before anything is started.
func (s *Spec) validate() error {
	m := s.Member
	switch {
	case len(s.Command) == 0 || s.Command[0] == "":
		return specError("the program has no command")
	case s.Processes < 1:
		return specError("%d processes are too few", s.Processes)
	case m.Rank < 0 || m.Rank+s.Processes > m.World:
		return specError("the ranks %d to %d are not in a world of %d", m.Rank, m.Rank+s.Processes-1, m.World)
	case m.Group < 0 || m.Group >= m.Groups:
		return specError("group %d is not one of %d", m.Group, m.Groups)
	case !isName(m.Run):
		return specError("%q is not the id of a run", m.Run)
	case !isName(m.Name):
		return specError("%q is not the name of a member", m.Name)
	case !isName(m.Role):
		return specError("%q is not a role", m.Role)
	case !filepath.IsAbs(s.Folder):
		return specError("the working folder %q is not an absolute name", s.Folder)
	case s.Grace < 0:
		return specError("the grace time is negative")
	case len(m.Members[m.Role]) > 0 && (m.Task < 0 || m.Task+s.Processes > len(m.Members[m.Role])):
		return specError("the role %s has %d addresses, too few for the tasks %d to %d",
			m.Role, len(m.Members[m.Role]), m.Task, m.Task+s.Processes-1)
	}
	switch s.Framework {
	case "", Torch, TensorFlow, JAX, None:
	default:
		return specError("%q is not a framework: the frameworks are torch, tensorflow, jax and none", s.Framework)
	}
	if n := len(s.Devices); n > 0 && s.Framework != Torch && n%s.Processes != 0 {
		return specError("%d devices cannot be shared equally by %d processes", n, s.Processes)
	}
	for _, text := range s.Command {
		if strings.ContainsRune(text, 0) {
			return specError("the command has an argument with a NUL character")
		}
	}
	return nil
}

// isName reports whether a text can be a part of a mark.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c == '/' || unicode.IsControl(c) })
}
