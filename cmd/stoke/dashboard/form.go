package dashboard

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// draft is a configuration that the form of a new run writes.
type draft struct {
	Fields   map[string]string // as they were filled in
	HCL      string
	File     string // suggested name
	Problems []string
	Checked  bool
	Saved    string
	Plan     string // its text, where the person asked for it
	MayWrite bool
	MayApply bool
	// Of a plan that may be applied: the token of the question, the totals, and the job
	// that is under way, if there is one.
	Token, Totals string
	Destroys      int
	Busy          string
}

// field is one argument of the form.
type field struct {
	name, block string // of the argument; the block "" is the resource
	isText      bool   // a string: otherwise a number
}

// fields are the arguments in the order of the file.
var fields = []field{
	{"name", "", true}, {"model", "", true}, {"strategy", "", true},
	{"learning_rate", "hyperparameters", false}, {"batch_size", "hyperparameters", false}, {"epochs", "hyperparameters", false},
	{"momentum", "hyperparameters", false}, {"weight_decay", "hyperparameters", false}, {"optimizer", "hyperparameters", true},
	{"seed", "hyperparameters", false},
	{"servers", "parameter_server", false},
	{"replicas", "worker", false}, {"min_replicas", "worker", false}, {"gpus", "worker", false},
	{"cpu", "worker", true}, {"memory", "worker", true}, {"bandwidth_mbps", "worker", false},
	{"evaluation_steps", "evaluation", false}, {"checkpoint_steps", "checkpoint", false},
}

// argument returns the name of a field's argument within its block.
func (f field) argument() string {
	switch f.name {
	case "servers":
		return "replicas"
	case "evaluation_steps", "checkpoint_steps":
		return "every_steps"
	}
	return f.name
}

// showForm answers with an empty form.
func (s *Server) showForm(w http.ResponseWriter, _ *http.Request) {
	d := &draft{MayWrite: s.source.MayWrite(), MayApply: s.source.MayApply(), Fields: map[string]string{
		"label": "new", "kind": "model", "model": "mlp", "dataset": "train_dataset.digits.uri", "learning_rate": "0.05", "batch_size": "64",
		"epochs": "5", "replicas": "2", "servers": "1", "evaluation_steps": "500",
	}}
	s.show(w, http.StatusOK, layout{Page: "new", Title: "New run", Body: d})
}

const (
	longestForm = 64 << 10 // bytes of the body of a request
	longestPlan = 1 << 20  // bytes of a plan that the page shows
)

// showDraft answers with the configuration of a form, checked, and saves it where the
// person asks for that.
func (s *Server) showDraft(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, "The form cannot be read", err.Error())
		return
	}
	d := &draft{MayWrite: s.source.MayWrite(), MayApply: s.source.MayApply(), Fields: make(map[string]string)}
	for name := range r.PostForm {
		d.Fields[name] = strings.TrimSpace(r.PostForm.Get(name))
	}
	d.write()
	if len(d.Problems) == 0 {
		problems, err := s.source.Validate(r.Context(), d.File, d.HCL)
		if err != nil {
			problems = []string{err.Error()}
		}
		for _, p := range problems {
			d.Problems = append(d.Problems, cleanText(p, longestText, true))
		}
		d.Checked = true
	}
	if r.PostForm.Get("do") == "plan" && len(d.Problems) == 0 {
		s.planDraft(r.Context(), d)
	}
	if r.PostForm.Get("do") == "save" && len(d.Problems) == 0 {
		if !d.MayWrite {
			s.fail(w, r, http.StatusForbidden, "This dashboard writes no files", "Start it with -allow-write, or copy the configuration.")
			return
		}
		path, err := s.source.Save(r.Context(), d.File, d.HCL)
		if err != nil {
			d.Problems = append(d.Problems, cleanText(err.Error(), longestText, true))
		}
		d.Saved = path
	}
	s.show(w, http.StatusOK, layout{Page: "new", Title: "New run", Body: d})
}

// planDraft adds the plan to a draft, and the question whether to apply it.
func (s *Server) planDraft(ctx context.Context, d *draft) {
	is, err := s.source.Plan(ctx, d.File, d.HCL)
	if err != nil {
		d.Problems = append(d.Problems, cleanText(err.Error(), longestText, true))
	}
	if n := len(is.Text) - longestPlan; n > 0 { // the errors and the summary are at the end
		is.Text = "…" + is.Text[n:]
	}
	d.Plan = cleanText(is.Text, len(is.Text), true)
	if err != nil || is.Apply == nil || !s.source.MayApply() {
		return
	}
	d.Totals, d.Destroys = is.Totals(), is.Destroy
	is.Text = "" // it may be long, and the question only keeps what it needs
	d.Token = s.applies.ask(question{file: d.File, address: "train_experiment." + d.Fields["label"], plan: is})
	if job := s.applies.newest(); job != nil && job.isLive() {
		d.Busy = job.address
	}
}

// write writes the configuration of the fields.
func (d *draft) write() {
	label := d.Fields["label"]
	if !hclsyntax.ValidIdentifier(label) {
		d.problem("Label", "%q is not a name: letters, digits, _ and -, and a letter first", label)
	}
	d.File = fileName(label) + "_experiment.tf" // the end is fixed: a file *_override.tf is merged into others
	file := hclwrite.NewEmptyFile()
	body := file.Body().AppendNewBlock("resource", []string{"train_experiment", label}).Body()
	d.expression(body, "cluster")
	isProgram := d.Fields["kind"] == "program"
	for _, f := range fields {
		if f.block == "" && !(isProgram && (f.name == "model" || f.name == "strategy")) {
			d.set(body, f)
		}
	}
	d.expression(body, "dataset")
	if isProgram {
		d.program(body)
	} else {
		d.hyperparameters(body)
	}
	for _, name := range []string{"parameter_server", "worker", "evaluation", "checkpoint"} {
		if isProgram && name == "evaluation" || name == "parameter_server" && (isProgram || d.Fields["strategy"] == "all_reduce") {
			continue
		}
		block := hclwrite.NewBlock(name, nil)
		for _, f := range fields {
			if f.block == name {
				d.set(block.Body(), f)
			}
		}
		if len(block.Body().Attributes()) > 0 {
			body.AppendNewline()
			body.AppendBlock(block)
		}
	}
	d.HCL = string(hclwrite.Format(file.Bytes()))
}

func (d *draft) problem(field, format string, args ...any) {
	d.Problems = append(d.Problems, field+": "+cleanText(fmt.Sprintf(format, args...), longestText, false)+".")
}

// value returns what a field sets; ok is false for nothing.
func (d *draft) value(f field) (v cty.Value, ok bool) {
	text := d.Fields[f.name]
	if text == "" {
		return cty.NilVal, false
	}
	if f.isText {
		return cty.StringVal(text), true
	}
	if n, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		d.problem(f.name, "%q is not a number", text)
		return cty.NilVal, false
	}
	v, err := cty.ParseNumberVal(text)
	if err != nil {
		d.problem(f.name, "%q is not a number", text)
		return cty.NilVal, false
	}
	return v, true
}

func (d *draft) set(body *hclwrite.Body, f field) {
	if v, ok := d.value(f); ok {
		body.SetAttributeValue(f.argument(), v)
	}
}

// expression sets an argument to a reference, or to the text as it is.
func (d *draft) expression(body *hclwrite.Body, name string) {
	text := d.Fields[name]
	if text == "" {
		return
	}
	traversal, diags := hclsyntax.ParseTraversalAbs([]byte(text), name, hcl.InitialPos)
	if diags.HasErrors() || len(traversal) < 2 {
		body.SetAttributeValue(name, cty.StringVal(text))
		return
	}
	body.SetAttributeTraversal(name, traversal)
}

// hyperparameters sets the argument hyperparameters, an object.
func (d *draft) hyperparameters(body *hclwrite.Body) {
	var all []hclwrite.ObjectAttrTokens
	for _, f := range fields {
		if f.block != "hyperparameters" {
			continue
		}
		if v, ok := d.value(f); ok {
			all = append(all, hclwrite.ObjectAttrTokens{Name: hclwrite.TokensForIdentifier(f.name), Value: hclwrite.TokensForValue(v)})
		}
	}
	if len(all) > 0 {
		body.AppendNewline()
		body.SetAttributeRaw("hyperparameters", hclwrite.TokensForObject(all))
	}
}

// program adds the block of a person's own program. Its command has one argument on
// each line of the field.
func (d *draft) program(body *hclwrite.Body) {
	var command []cty.Value
	for line := range strings.Lines(d.Fields["command"]) {
		if line = strings.TrimSpace(line); line != "" {
			command = append(command, cty.StringVal(line))
		}
	}
	if len(command) == 0 {
		d.problem("Command", "the program is needed, with an argument on each line")
		return
	}
	if image := d.Fields["image"]; image != "" {
		d.expression(body, "image")
	}
	body.AppendNewline()
	block := body.AppendNewBlock("program", nil).Body()
	block.SetAttributeValue("command", cty.ListVal(command))
	if code := d.Fields["code"]; code != "" {
		block.SetAttributeValue("code", cty.StringVal(code))
	}
}
