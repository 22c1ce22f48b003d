package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestProgramMistakesAreOneErrorEach(t *testing.T) {
	b, of := programs(t)
	str, num := cty.StringVal, cty.NumberIntVal
	in := func(name string) cty.Path { return cty.GetAttrPath("program").GetAttr(name) }
	params := func(v values) cty.Value { return cty.ObjectVal(v) }
	env := func(name, value string) cty.Value { return cty.MapVal(values{name: str(value)}) }
	ty := b.schema(experiment).ImpliedType()

	tool := filepath.Join(writeCode(t, t.TempDir(), "tool", "#!/bin/sh"), "tool") // not executable
	outside, pipes, large := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(outside, "passwords")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("none", filepath.Join(pipes, "link")); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(large, "weights"))
	if err == nil {
		err = big.Truncate(65 << 20)
	}
	if err != nil {
		t.Fatal(err)
	}
	big.Close()
	lab := cty.ObjectVal(values{"credential": cty.ObjectVal(values{"kubeconfig": cty.ObjectVal(values{"path": str("~/.kube/config")})})})
	tests := []struct {
		name    string
		change  values
		summary string
		at      cty.Path
		says    string
	}{
		{"both", values{"model": str("mlp"), "hyperparameters": cty.ObjectVal(values{"seed": num(1)})}, "More than one model or program", cty.GetAttrPath("model"), "model and program"},
		{"neither", values{"program": cty.NullVal(ty.AttributeType("program"))}, "Neither a model nor a program", cty.GetAttrPath("model"), "block program"},
		{"model without dataset", values{"program": cty.NullVal(ty.AttributeType("program")), "model": str("mlp")}, "No dataset given", cty.GetAttrPath("dataset"), "train_dataset"},
		{"a bucket", values{"cluster": lab, "image": str("x"), "checkpoint": cty.ObjectVal(values{"place": str("gs://bucket/runs")})},
			"A program's checkpoints are in a folder", cty.GetAttrPath("checkpoint").GetAttr("place"), "on a volume"},
		{"hyperparameters", values{"hyperparameters": cty.ObjectVal(values{"seed": num(1), "epochs": num(2)})}, "Only built-in models know this", cty.GetAttrPath("hyperparameters"), "parameters in program {}"},
		{"strategy", values{"strategy": str("parameter_server")}, "Only built-in models know this", cty.GetAttrPath("strategy"), "Leave it out"},
		{"synchronous", values{"synchronous": cty.True}, "Only built-in models know this", cty.GetAttrPath("synchronous"), "Leave it out"},
		{"deterministic", values{"deterministic": cty.False}, "Only built-in models know this", cty.GetAttrPath("deterministic"), "Leave it out"},
		{"batch_per", values{"batch_per": str("worker")}, "Only built-in models know this", cty.GetAttrPath("batch_per"), "Leave it out"},
		{"scaling", values{"learning_rate_scaling": str("none")}, "Only built-in models know this", cty.GetAttrPath("learning_rate_scaling"), "Leave it out"},
		{"evaluation", values{"evaluation": cty.ObjectVal(values{"every_steps": num(5)})}, "Only built-in models know this", cty.GetAttrPath("evaluation"), "as metrics"},
		{"checkpoints by steps", values{"checkpoint.every_steps": num(5)}, "Only built-in models know this", cty.GetAttrPath("checkpoint").GetAttr("every_steps"), "saves its checkpoints by itself"},
		{"checkpoints by time", values{"checkpoint.every_seconds": num(5)}, "Only built-in models know this", cty.GetAttrPath("checkpoint").GetAttr("every_seconds"), "by itself"},
		{"checkpoints kept", values{"checkpoint.keep": num(5)}, "Only built-in models know this", cty.GetAttrPath("checkpoint").GetAttr("keep"), "by itself"},
		{"variables of pods", values{"environment": env("A", "1")}, "Only clusters know this", cty.GetAttrPath("environment"), "in program {}"},
		{"place without cluster", values{"checkpoint.place": str("gs://lab/run")}, "Only clusters know this", cty.GetAttrPath("checkpoint").GetAttr("place"), "cluster"},

		{"no command", values{"program.command": cty.NullVal(cty.List(cty.String))}, "No command given", in("command"), "python3"},
		{"empty command", values{"program.command": cty.ListValEmpty(cty.String)}, "No command given", in("command"), "python3"},
		{"null in command", values{"program.command": cty.ListVal([]cty.Value{str("sh"), cty.NullVal(cty.String)})}, "Value out of range", in("command"), "element 1 is null"},
		{"not on the PATH", values{"program.command": texts("nothing-of-the-kind")}, "Command is not on the PATH", in("command"), `"nothing-of-the-kind"`},
		{"not on its own PATH", values{"program.environment": env("PATH", b.dir)}, "Command is not on the PATH", in("command"), b.dir},
		{"not installed", values{"program.command": texts("/nonexistent/stoke/tool")}, "There is no such command", in("command"), "/nonexistent/stoke/tool"},
		{"not a program", values{"program.command": texts(tool)}, "Command is not executable", in("command"), "chmod +x"},
		{"a folder as program", values{"program.command": texts(filepath.Dir(tool))}, "Command is not executable", in("command"), "not a program"},
		{"not in the code", values{"program.command": texts("./bin/train")}, "There is no such command", in("command"), b.code},
		{"not executable in the code", values{"program.command": texts("./train.sh")}, "Command is not executable", in("command"), "chmod +x"},
		{"above the code", values{"program.command": texts("../train.sh")}, "There is no such command", in("command"), "begin there"},
		{"relative without code", values{"program.command": texts("./train.sh"), "program.code": cty.NullVal(cty.String)}, "Command has no folder", in("command"), "give code"},
		{"unknown name", values{"program.command": texts("sh", "--rate={{rat}}")}, "Command and parameters do not fit", in("command"), "{{rat}}: the parameters are fast, rate"},
		{"command of a parameter", values{"program.command": texts("{{tool}}"), "program.parameters": params(values{"tool": str("nothing-of-the-kind")})}, "Command is not on the PATH", in("command"), `"nothing-of-the-kind"`},

		{"no such code", values{"program.code": str("/nonexistent/stoke")}, "Code cannot be used", in("code"), "make the folder"},
		{"a link outside", values{"program.code": str(outside)}, "Code cannot be used", in("code"), "passwords is a link to the absolute name /etc/passwd"},
		{"a large file", values{"program.code": str(large)}, "Code cannot be used", in("code"), "64 MiB"},

		{"processes", values{"program.processes": str("many")}, "Value out of range", in("processes"), `a number from 1, or "gpu"`},
		{"no process", values{"program.processes": num(0)}, "Value out of range", in("processes"), "a number from 1"},
		{"half a process", values{"program.processes": cty.NumberFloatVal(1.5)}, "Value out of range", in("processes"), `"1.5"`},
		{"too many processes", values{"program.processes": num(1000)}, "Value out of range", in("processes"), "256"},
		{"processes of no GPU", values{"program.processes": str("gpu")}, "A worker has no GPU", in("processes"), "worker.gpus"},
		{"GPUs that cannot be shared", values{"program.processes": num(2), "worker.gpus": num(3)}, "GPUs cannot be shared equally", in("processes"), "3 GPUs"},
		{"framework", values{"program.framework": str("mxnet")}, "Unknown value", in("framework"), "torch, tensorflow, jax, none"},
		{"servers of torch", values{"program.framework": str("torch")}, "Programs of this framework have no servers", cty.GetAttrPath("parameter_server").GetAttr("replicas"), "Leave parameter_server out"},
		{"chief of no framework", values{"program.framework": str("none"), "program.chief": cty.True}, "Only TensorFlow has a chief and an evaluator", in("framework"), "tensorflow"},
		{"evaluator without others", values{"program.evaluator": cty.True}, "Too few workers for an evaluator", cty.GetAttrPath("worker").GetAttr("min_replicas"), "min_replicas"},
		{"on_change", values{"program.on_change": str("restart")}, "Unknown value", in("on_change"), "new_run, resume"},
		{"reserved", values{"program.environment": cty.MapVal(values{"RANK": str("1"), "STOKE_X": str("1"), "A": str("1")})}, "stoke sets this variable itself", in("environment"), "Leave RANK, STOKE_X out"},
		{"malformed variable", values{"program.environment": env("A=B", "1")}, "Not a name of an environment variable", in("environment"), "A=B"},
		{"a list as parameter", values{"program.parameters": params(values{"rate": num(1), "a": texts("x")})}, "A parameter has parts", in("parameters"), "a must be"},
		{"a text as parameters", values{"program.parameters": str("rate"), "program.command": texts("sh")}, "Parameters are not values by name", in("parameters"), "name = value"},
		{"names of one variable", values{"program.parameters": params(values{"rate": num(1), "a-b": str("x"), "a_b": str("y")})}, "Parameters have one variable", in("parameters"), "STOKE_PARAM_A_B"},
		{"a number beyond all", values{"program.parameters": params(values{"rate": cty.MustParseNumberVal("1e-999")})}, "Value out of range", in("parameters"), "64 bits"},
		{"timeout", values{"program.join_timeout": str("soon")}, "Value out of range", in("join_timeout"), `"soon"`},
		{"long grace", values{"program.stop_grace": str("90m")}, "Time out of range", in("stop_grace"), "1h0m0s"},
		{"restarts", values{"program.max_restarts": num(-1)}, "Value out of range", in("max_restarts"), "-1"},
		{"no dataset", values{"dataset": str("/nonexistent/stoke")}, "There is no such dataset", cty.GetAttrPath("dataset"), "/nonexistent/stoke"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			d := oneError(t, b.plan(b.new(experiment), of(test.change)).Diagnostics, test.summary)
			if !d.Path.Equals(test.at) || !strings.Contains(d.Detail, test.says) {
				t.Errorf("error at %#v, want %#v: %s", d.Path, test.at, d.Detail)
			}
		})
	}
	if _, err := os.Stat(b.runs); err == nil {
		t.Error("planning wrote to the runs folder")
	}
}

// Commands that this machine can start.
func TestCommandsThatAreFound(t *testing.T) {
	b, of := programs(t)
	writeCode(t, b.code, "run", "#!/bin/sh")
	if err := os.Chmod(filepath.Join(b.code, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run", filepath.Join(b.code, "link")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]values{
		"of the code":      {"program.command": texts("./run")},
		"a link":           {"program.command": texts("./link")},
		"absolute":         {"program.command": texts(self)},
		"of its own PATH":  {"program.command": texts(filepath.Base(self)), "program.environment": cty.MapVal(values{"PATH": cty.StringVal("/nonexistent:" + filepath.Dir(self))})},
		"in the code":      {"program.command": texts("run"), "program.environment": cty.MapVal(values{"PATH": cty.StringVal(".")})},
		"of a parameter":   {"program.command": texts("{{tool}}"), "program.parameters": cty.ObjectVal(values{"tool": cty.StringVal("sh")})},
		"null parameter":   {"program.parameters": cty.ObjectVal(values{"rate": cty.NumberIntVal(1), "none": cty.NullVal(cty.String)})},
		"GPUs shared":      {"program.processes": cty.StringVal("gpu"), "worker.gpus": cty.NumberIntVal(4)},
		"servers, no name": {"program.framework": cty.StringVal("none"), "parameter_server.replicas": cty.NumberIntVal(2)},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			noErrors(t, b.plan(b.new(experiment), of(change)).Diagnostics)
		})
	}
}
