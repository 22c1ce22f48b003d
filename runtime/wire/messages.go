package wire

import (
	"fmt"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// Type says what a frame's head is.
type Type uint8

// The types of frames. Comments name head and body.
//
// Whoever speaks for the run does so in a term. A server or worker refuses
// what comes in a lower one than it has heard of.
const (
	TypeHello   Type = iota + 1 // Hello
	TypeWelcome                 // nothing
	TypeRefused                 // Refusal

	// Worker and coordinator.
	TypeLease     // Lease: to the worker
	TypeReport    // Report: to the coordinator
	TypeHeartbeat // Heartbeat: to the coordinator, which answers with an empty one
	TypeApplied   // Applied: to a worker
	TypeLeave     // Leave: to a worker or a server, which ends
	TypeFailure   // Failure: to the coordinator, from a worker that cannot work

	// Worker and server.
	TypePull   // Pull
	TypeValues // Values, with the server's span
	TypePush   // Push, with the server's span of the summed gradients
	TypeAnswer // Answer: to Push and all of the coordinator's requests

	// Coordinator and server; each is answered by Answer.
	TypeRestore // Restore, with the initial values unless it names a checkpoint
	TypePrepare // Prepare
	TypeApply   // Apply
	TypeCut     // Cut
	TypeWrite   // Write
	TypeDiscard // Discard
	TypePiece   // Piece, with values; either way, and not answered

	// Either way, between other frames: Receive passes over it.
	TypePing // nothing

	// Worker and coordinator.
	TypeLog    // Log: to the coordinator, from a worker that leaves or cannot work; not answered
	TypeRevoke // Revoke: to a worker; not answered

	// Coordinator and server; each is answered by Answer.
	TypeHold   // Hold
	TypeAttach // Attach

	// Agent of a program and coordinator; not answered.
	TypeReady    // Ready: to the coordinator
	TypeBegin    // Begin: to the agent
	TypeRunning  // Running: to the coordinator
	TypeHalt     // Halt: to the agent
	TypeResult   // Result: to the coordinator
	TypeObserved // Observed: to the coordinator

	// Members of a group.
	TypeFetch      // Fetch: answered with Pieces, or by Answer
	TypeMadeUpdate // MadeUpdate, with sums: to a follower; not answered

	// Coordinator and follower.
	TypeFollow // Follow: answered by Answer
)

var typeNames = map[Type]string{
	TypeHello: "hello", TypeWelcome: "welcome", TypeRefused: "refusal", TypeLease: "lease", TypeReport: "report",
	TypeHeartbeat: "heartbeat", TypeApplied: "applied", TypeLeave: "leave", TypeFailure: "failure", TypePull: "pull",
	TypeValues: "values", TypePush: "push", TypeAnswer: "answer", TypeRestore: "restore", TypePrepare: "prepare",
	TypeApply: "apply", TypeCut: "cut", TypeWrite: "write", TypeDiscard: "discard", TypePiece: "piece", TypePing: "ping",
	TypeLog: "log", TypeRevoke: "revoke", TypeHold: "hold", TypeAttach: "attach",
	TypeReady: "ready", TypeBegin: "begin", TypeRunning: "running", TypeHalt: "halt", TypeResult: "result", TypeObserved: "observed",
	TypeFetch: "fetch", TypeMadeUpdate: "made update", TypeFollow: "follow",
}

func (t Type) String() string {
	if n, ok := typeNames[t]; ok {
		return n
	}
	return fmt.Sprintf("frame of type %d", uint8(t))
}

// Lease hands a worker records to compute, whose sums it pushes once: a block
// of consecutive leases of the specification, which are added up as engine.Tree
// says. The contribution's records are the positions [Start, End) of the
// epoch's order, or for an evaluation the test records of these numbers.
type Lease struct {
	ID       int64 `json:"id"` // never given twice in a term
	Evaluate bool  `json:"evaluate,omitempty"`
	// Version of the parameters to compute with: exactly this one, or
	// asynchronously at least this one.
	Version int64 `json:"version"`
	Exact   bool  `json:"exact,omitempty"`
	// Current is the version that the servers have reached. A lease beyond it
	// is for reading its records ahead, until Applied tells of its version.
	Current int64 `json:"current"`
	// Early lets the worker report before it pushes: the server waits for what
	// the coordinator names.
	Early bool `json:"early,omitempty"`
	// Workers is the number of workers that the run wants now: they share the
	// machine's cores.
	Workers int `json:"workers,omitempty"`
	// Leaf is how many records each lease of the specification has; the last
	// one of the block may have fewer. 0: the block is one.
	Leaf int64 `json:"leaf,omitempty"`
	// Then are leases of the updates that follow, by their versions.
	Then []Lease `json:"then,omitempty"`
	// Waits says that the report on the lease may wait for the report on the next one.
	Waits bool `json:"waits,omitempty"`
	spec.Contribution
}

// Heartbeat shows that a worker lives, and how far it is with the lease that
// it computes.
type Heartbeat struct {
	Term  int64 `json:"term,omitempty"`  // the highest that the worker has heard of
	Lease int64 `json:"lease,omitempty"` // 0: none
	Done  int64 `json:"done,omitempty"`  // grows with every micro-batch read or computed
}

// Log has the last lines of a worker's log, which may be gone with the worker.
type Log struct {
	Lines []string `json:"lines"` // at most LogLines, with LogBytes in all; without their ends
}

// How much of a log is sent.
const (
	LogLines = 200
	LogBytes = 32 << 10
)

// Leaves is how many leases of the specification the block has.
func (l *Lease) Leaves() int {
	if l.Leaf <= 0 || l.End <= l.Start {
		return 1
	}
	return int((l.End - l.Start + l.Leaf - 1) / l.Leaf)
}

// Revoke takes a lease back that another worker computes: what is done for it
// has no effect.
type Revoke struct {
	Term int64 `json:"term"`
	ID   int64 `json:"id"`
}

// Report ends a lease.
type Report struct {
	ID       int64    `json:"id"`
	Term     int64    `json:"term"`
	Evaluate bool     `json:"evaluate,omitempty"`
	Version  int64    `json:"version"` // that was computed with
	Weight   float64  `json:"weight"`  // sums over the records, as in engine.Result
	Loss     *float64 `json:"loss"`    // nil when it is not finite
	// Losses has one for each lease of the specification, where the block has
	// several: the update's loss does not depend on the blocks.
	Losses  []float64 `json:"losses,omitempty"`
	Metrics []float64 `json:"metrics,omitempty"`
	Finite  bool      `json:"finite"`
	// Before are reports on earlier leases of the worker, in their order.
	Before []Report `json:"before,omitempty"`
	// Dropped means that the lease was void (a server refused it): nothing was
	// computed for it.
	Dropped bool `json:"dropped,omitempty"`
	// Departs, of a report on no lease, hands all leases back: the process has got SIGTERM,
	// and waits for Leave.
	Departs bool `json:"departs,omitempty"`
	// Error is why the records could not be computed, Fault what kind of error
	// that is.
	Error string     `json:"error,omitempty"`
	Fault spec.Fault `json:"fault,omitempty"`
}

// Applied tells a worker that the servers have reached the version that it
// waits for: in asynchronous runs, a version with its own push.
type Applied struct {
	Term    int64 `json:"term"`
	Version int64 `json:"version"`
}

// Leave ends a worker or a server: End is the status that its process is to
// end with. As an error it is how a role's work ended.
type Leave struct {
	Term   int64    `json:"term"`
	End    spec.End `json:"end"`
	Reason string   `json:"reason"`
}

func (l Leave) Error() string {
	if l.Reason == "" {
		return l.End.String()
	}
	return l.Reason
}

// Failure is a worker's last word.
type Failure struct {
	Error string     `json:"error"`
	Fault spec.Fault `json:"fault,omitempty"` // "": of the machine or of the engine on it
}

// Pull asks for a server's parameters, once it is at Version. Have is the
// version that the worker holds: when nothing is newer, no values are sent. One
// that waits is replaced by the next.
type Pull struct {
	Term    int64 `json:"term"`
	Version int64 `json:"version"`
	Have    int64 `json:"have"` // -1: none
	// Follow, of a member of a group, requests the sums of all later versions of the
	// term as well.
	Follow bool `json:"follow,omitempty"`
}

// Values answers Pull, also one that came with a push.
type Values struct {
	Term    int64  `json:"term"`
	Refused string `json:"refused,omitempty"` // why there are none
	Version int64  `json:"version"`
	From    int    `json:"from"` // offset of the span in the flat vector
	// Norms are, with the sums of a member's share, the squared norms of its whole pieces of 32,768
	// values. Where they are missing, the receiver finds them: JSON carries only finite ones.
	Norms []float64 `json:"norms,omitempty"`
}

// Push gives a server its span of a block's sums. It is kept apart until the
// coordinator names it in Prepare.
type Push struct {
	ID      int64   `json:"id"`
	Version int64   `json:"version"` // that was computed with
	Exact   bool    `json:"exact,omitempty"`
	Weight  float64 `json:"weight"`
	// Leaves is how many leases of the specification the sums are of.
	Leaves int `json:"leaves"`
	// Next asks for the version that the update makes, as a Pull would, once
	// the push has been answered.
	Next bool `json:"next,omitempty"`
	// Quiet is of a worker that has reported already: only a refusal is answered.
	Quiet bool `json:"quiet,omitempty"`
	spec.Contribution
}

// Answer ends a request. Refused is for requests that came too late or too
// early and may be dropped; Error is for what should not happen.
type Answer struct {
	// Term, with Refused, is the highest that the server has heard of: whoever
	// asked in a lower one has been superseded.
	Term    int64  `json:"term,omitempty"`
	Refused string `json:"refused,omitempty"`
	Quiet   bool   `json:"quiet,omitempty"` // of a quiet Push
	// Missing, of Prepare, is a contribution that did not come, and will not.
	Missing int64  `json:"missing,omitempty"`
	Error   string `json:"error,omitempty"`

	SquaredNorm float64 `json:"squared_norm,omitempty"` // Prepare: of this span's mean gradient
	Finite      bool    `json:"finite,omitempty"`       // Prepare
	Series      *Series `json:"series,omitempty"`       // Prepare of several updates

	Held *Holding        `json:"held,omitempty"` // Hold
	Part checkpoint.Part `json:"part,omitzero"`  // Write
	// Send asks for the values of a Restore as Pieces; Damaged says that the
	// checkpoint is not what its manifest says.
	Send    bool `json:"send,omitempty"`
	Damaged bool `json:"damaged,omitempty"`
}

// Series has the squared norms of the updates that a member made before the one that
// Answer is about. All of these were finite.
type Series struct {
	SquaredNorms []float64 `json:"squared_norms"`
}

// Hold asks a server for the state of its parameters, which from then on no lower
// term changes.
type Hold struct {
	Term int64 `json:"term"`
}

// Holding is the state of a server's parameters.
type Holding struct {
	Term     int64 `json:"term"` // that began with these parameters; 0: the server has none
	Version  int64 `json:"version"`
	From     int   `json:"from"` // the server's span of the flat vector
	To       int   `json:"to"`
	Prepared bool  `json:"prepared,omitempty"` // the next update is prepared
	// Decision and Taken are about the update that made Version; nil: that was no
	// update.
	Decision *Apply              `json:"decision,omitempty"`
	Taken    []spec.Contribution `json:"taken,omitempty"`
	// Before are the updates before that one which a member of a group made, the newest
	// one last.
	Before []Past `json:"before,omitempty"`
	// Follows, of a follower, means that newer updates may still be on their way to it.
	Follows bool `json:"follows,omitempty"`
}

// Past is an update that a member has made, with the range of its records in the order of
// its epoch. The range is empty where the member does not know the records.
type Past struct {
	Skip  bool  `json:"skip,omitempty"`
	Epoch int   `json:"epoch"`
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// PastOf returns the past of an update that has taken these contributions.
func PastOf(skip bool, taken []spec.Contribution) Past {
	p := Past{Skip: skip}
	for i, t := range taken {
		if i == 0 {
			p.Epoch, p.Start, p.End = t.Epoch, t.Start, t.End
		}
		p.Start, p.End = min(p.Start, t.Start), max(p.End, t.End)
	}
	return p
}

// MostAhead is the highest number of updates in one Prepare.
const MostAhead = 16

// MostPast is the highest number of updates that a member remembers: those of its newest
// Prepare, and of the one before, which the coordinator may not have entered in its ledger.
const MostPast = 2 * MostAhead

// Attach begins a term with the parameters that the servers hold. Servers that
// are one update behind Version make the update that they have prepared.
type Attach struct {
	Term    int64  `json:"term"`
	Held    int64  `json:"held"` // the term of the parameters
	Version int64  `json:"version"`
	Redo    *Apply `json:"redo,omitempty"`
	// Group is the members of an all-reduce; nil: of parameter servers.
	Group *Group `json:"group,omitempty"`
}

// Group is the members of an all-reduce in one term, in the order of their shares
// of the vector: every member holds all of it, and adds up its share.
type Group struct {
	Members []string `json:"members"` // addresses, host:port
	Mine    int      `json:"mine"`    // which of them the receiver is
	// Whole means that the share of each member is all of the vector: a member needs
	// the contributions of the others, and no sums.
	Whole bool `json:"whole,omitempty"`
}

// NewGroup returns the group of these members of a vector of n values, for one of them. Two
// members send each other as much as with shares of half the vector, but wait for one message
// instead of two, one after the other: with a short vector that takes longer than its sums.
func NewGroup(members []string, mine, n int) *Group {
	return &Group{Members: members, Mine: mine, Whole: len(members) == 2 && 4*n <= mostShared}
}

// MemberPatience is the longest silence of a member before the others go on without it; it
// joins again later. Where a member cannot reach another one, it waits as long for the
// coordinator to form another group.
const MemberPatience = 3 * time.Second

// Share returns the share [from, to) of a vector of n values that a member adds up.
func (g *Group) Share(n, member int) (from, to int) {
	if g.Whole {
		return 0, n
	}
	k := len(g.Members)
	return n * member / k, n * (member + 1) / k
}

// Fetch asks a member for its parameters and slots as a term begins with them: it
// sends them as Pieces once it has begun that term.
type Fetch struct {
	Term    int64 `json:"term"`
	Version int64 `json:"version"`
	// Follow is of a follower: the member sends its present parameters and slots while it
	// makes updates, and each update that it makes as a MadeUpdate, in any term.
	Follow bool `json:"follow,omitempty"`
	Values int  `json:"values,omitempty"` // of the vector that the follower expects
	Slots  int  `json:"slots,omitempty"`  // that the follower expects
}

// Follow asks a worker that is not a member of the group to become a follower: to fetch
// the parameters and slots of a member, and to make each update after that member. The
// answer comes once the follower is at the member's version.
type Follow struct {
	Term   int64       `json:"term"`
	Source string      `json:"source"` // address of the member
	Values int         `json:"values"` // of the vector
	Slots  int         `json:"slots"`  // of the optimizer
	Vars   []model.Var `json:"vars"`
}

// MadeUpdate is an update that a member has made, for its follower, whose body is the sums of
// the first values of the vector: those that the follower has got. A skipped update has
// none.
type MadeUpdate struct {
	Apply
	Weight float64 `json:"weight"`
}

// Restore puts a server at one cut and begins a term: whatever it held of an
// earlier one is void.
type Restore struct {
	Term    int64            `json:"term"`
	Version int64            `json:"version"`
	From    int              `json:"from"` // the server's span of the flat vector
	To      int              `json:"to"`
	Vars    []model.Var      `json:"vars"` // of the span, offsets relative to From
	Recipe  optimizer.Recipe `json:"recipe"`
	// Checkpoint and Parts say which checkpoint to load, from the place where
	// the server has access to it. A server that has none answers with Send,
	// and gets the span's values as Pieces. No parts: the body has the values,
	// slots are zero.
	Checkpoint string            `json:"checkpoint,omitempty"`
	Parts      []checkpoint.Part `json:"parts,omitempty"`
	// Exact: contributions are computed with just the server's own version.
	// The coordinator never names one of an earlier version.
	Exact bool `json:"exact,omitempty"`
	// Group is the members of an all-reduce; Source is the address of one of them
	// that has parameters and slots already: the receiver fetches them there.
	Group  *Group `json:"group,omitempty"`
	Source string `json:"source,omitempty"`
}

// Discard makes a server forget the contributions of revoked leases, also where
// they are still on their way.
type Discard struct {
	Term    int64   `json:"term"`
	Version int64   `json:"version"` // before the update
	IDs     []int64 `json:"ids"`
}

// Prepare makes a server add up the named contributions, in this order. Nothing
// is applied yet.
type Prepare struct {
	Term    int64   `json:"term"`
	Version int64   `json:"version"` // before the update
	IDs     []int64 `json:"ids"`
	// Sessions has the worker's session for each contribution, in the same
	// order. Once a session has no connection, its missing contributions
	// cannot come.
	Sessions []string `json:"sessions,omitempty"`
	Discard  []int64  `json:"discard,omitempty"` // see Discard
	Weight   float64  `json:"weight"`            // of all of it
	// Alone tells the only server of a run: what it finds finite it applies at
	// once, with this recipe, and skips what it does not.
	Alone *optimizer.Recipe `json:"alone,omitempty"`
	// Then are updates that follow this one. A member makes one after the other, up to one
	// that it skips, and answers once.
	Then []Prepare `json:"then,omitempty"`
}

// Apply commits the prepared update, or skips it; either way the version
// grows by one.
type Apply struct {
	Term    int64            `json:"term"`
	Version int64            `json:"version"` // before the update
	Skip    bool             `json:"skip,omitempty"`
	Scale   float64          `json:"scale"` // of the mean gradient
	Recipe  optimizer.Recipe `json:"recipe"`
	// Taken is for the log of an update that is skipped without having been
	// prepared.
	Taken []spec.Contribution `json:"taken,omitempty"`
}

// CutRequest makes a server copy its parameters and slots; training may go on.
type CutRequest struct {
	Term    int64 `json:"term"`
	Version int64 `json:"version"`
}

// Write makes a server write its last cut as a part of a checkpoint. A server
// that has no access to where checkpoints lie sends it as Pieces before it
// answers.
type Write struct {
	Term       int64  `json:"term"`
	Checkpoint string `json:"checkpoint"`
	Part       string `json:"part"`
}

// Piece is some values of a server's span of a checkpoint, on their way between
// the server and the coordinator: the body, from element Offset of the span on,
// of vector 0 (parameters) or one of the slots. Last ends them and has no
// values; Error says that they come to nothing.
type Piece struct {
	Vector int    `json:"vector"`
	Offset int    `json:"offset"`
	Last   bool   `json:"last,omitempty"`
	Error  string `json:"error,omitempty"`
	// At, to a follower, is the state that the values are of.
	At *Applied `json:"at,omitempty"`
}

// PieceValues is how many values a piece has at most.
const PieceValues = 1 << 20
