package pjrt

//lint:file-ignore U1000 The plugin reads the fields that Go leaves zero, and Go reaches head by its address.

import "unsafe"

// spare is room for fields that newer plugins have at the end of a struct. A
// plugin refuses a struct that is smaller than its own and takes larger ones.
const spare = 64

// handle is the address of an object that the plugin owns.
type handle = uintptr

// head begins every struct of the interface.
type head struct {
	size       uintptr
	extensions uintptr
}

// namedValue is an option or an attribute. Options are a list, so it has no
// spare bytes.
type namedValue struct {
	head
	name       unsafe.Pointer
	nameLength uintptr
	kind       int32
	value      uint64 // or an address, a float32, a bool
	length     uintptr
}

// The kinds of a namedValue.
const (
	kindString    = 0
	kindInt64     = 1
	kindInt64List = 2
	kindFloat     = 3
	kindBool      = 4
)

type attributesArgs struct {
	head
	values uintptr
	count  uintptr
}

// objectArgs is the shape of calls that take one object.
type objectArgs struct {
	head
	object handle
}

// resultArgs is the shape of calls that take an object and return one word.
type resultArgs struct {
	head
	object handle
	result uintptr
}

// textArgs is the shape of calls that take an object and return a text or a list.
type textArgs struct {
	head
	object handle
	data   uintptr
	length uintptr
}

type onReadyArgs struct {
	head
	event    handle
	callback uintptr
	argument uintptr
}

type clientCreateArgs struct {
	head
	options     unsafe.Pointer
	optionCount uintptr
	store       [4]uintptr // callbacks of a key-value store, for several processes
	client      handle
	tryGet      [2]uintptr
}

type program struct {
	head
	code         unsafe.Pointer
	codeLength   uintptr
	format       unsafe.Pointer
	formatLength uintptr
}

type compileArgs struct {
	head
	client        handle
	program       *program
	options       unsafe.Pointer
	optionsLength uintptr
	executable    handle
}

type fromHostArgs struct {
	head
	client      handle
	data        unsafe.Pointer
	kind        int32
	dims        unsafe.Pointer
	dimCount    uintptr
	strides     uintptr
	strideCount uintptr
	semantics   int32
	device      handle
	memory      handle
	layout      uintptr
	done        handle // event
	buffer      handle
}

// The semantics of memory that an upload reads.
const (
	immutableOnlyDuringCall         = 0
	immutableUntilTransferCompletes = 1
)

type toHostArgs struct {
	head
	buffer handle
	layout uintptr
	data   unsafe.Pointer
	length uintptr
	event  handle
}

type executeOptions struct {
	head
	sendCallbacks, receiveCallbacks uintptr
	sends, receives                 uintptr
	launch                          int32
	keep                            uintptr // indices of arguments that must not be donated
	keepCount                       uintptr
	context, location               uintptr
	tasks, taskIDs, incarnations    uintptr
	slices                          uintptr
	spare                           [spare]byte
}

type executeArgs struct {
	head
	executable  handle
	options     *executeOptions
	arguments   unsafe.Pointer // one list for each device
	devices     uintptr
	argCount    uintptr
	outputs     unsafe.Pointer // one list for each device
	completions uintptr        // one event for each device, or none
	device      handle
}

type serializeArgs struct {
	head
	executable handle
	data       uintptr
	length     uintptr
	backing    handle
	release    uintptr
}

type deserializeArgs struct {
	head
	client        handle
	data          unsafe.Pointer
	length        uintptr
	executable    handle
	options       uintptr
	optionsLength uintptr
}

type dmaArgs struct {
	head
	client handle
	data   unsafe.Pointer
	length uintptr
}

// optional is a number that the plugin may leave unset.
type optional struct {
	value int64
	set   bool
}

type deviceMemoryArgs struct {
	head
	device  handle
	inUse   int64
	peak    optional
	count   optional
	largest optional
	limit   optional
	rest    [6]optional
}

type compiledMemoryArgs struct {
	head
	executable                                 handle
	code, arguments, outputs, alias, temporary int64
	rest                                       [10]int64
}
