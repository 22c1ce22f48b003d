package program

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names of our own variables.
const (
	checkpointVariable = "STOKE_CHECKPOINT_DIR"
	resumeVariable     = "STOKE_RESUME_FROM"
	datasetVariable    = "STOKE_DATASET_DIR"
	metricsVariable    = "STOKE_METRICS_FILE"
	parametersVariable = "STOKE_PARAMETERS"
	parameterPrefix    = "STOKE_PARAM_"
	devicesVariable    = "CUDA_VISIBLE_DEVICES"
)

// Reserved reports whether a program's environment variable is set by this
// package, so that a value of the user would have no effect.
func Reserved(name string) bool {
	switch name {
	case "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE",
		"ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID",
		"WORKER_HOSTS", "PS_HOSTS", "POD_NAME", "JOB_NAME", "TASK_INDEX":
		return true
	}
	return strings.HasPrefix(name, "STOKE_") || strings.HasPrefix(name, "TORCHELASTIC_")
}

// environment returns the variables of one rank, sorted.
func (s *Spec) environment(local int) ([]string, error) {
	all := make(map[string]string)
	for _, v := range s.Environment {
		if name, value, ok := strings.Cut(v, "="); ok && !Reserved(name) {
			all[name] = value
		}
	}
	for _, part := range []map[string]string{s.torchVariables(local), s.memberVariables(local), s.frameworkVariables(local)} {
		maps.Copy(all, part)
	}
	if _, ok := all["OMP_NUM_THREADS"]; !ok && s.Processes > 1 {
		all["OMP_NUM_THREADS"] = "1" // as torchrun: else each rank takes all processors
	}
	if _, ok := all["TORCH_NCCL_ASYNC_ERROR_HANDLING"]; !ok && s.Framework == Torch {
		all["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1" // as torchrun: a lost peer ends the program, instead of a hang
	}
	if devices := s.devicesOf(local); devices != nil {
		all[devicesVariable] = strings.Join(devices, ",")
	}
	parameters, err := parameterVariables(s.Parameters)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, parameters)
	for name, value := range map[string]string{checkpointVariable: s.Checkpoints, resumeVariable: s.Resume, datasetVariable: s.Dataset} {
		if value != "" {
			all[name] = value
		}
	}
	all[parametersVariable], all[metricsVariable] = s.parametersFile(), s.metricsFile(local)
	all[markVariable] = s.Member.mark().String()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list, nil
}

// torchVariables are the variables that torchrun sets.
func (s *Spec) torchVariables(local int) map[string]string {
	m := s.Member
	roleRank, roleWorld := m.Rank+local, m.World
	if n := len(m.Members[m.Role]); n > 0 {
		roleRank, roleWorld = m.Task+local, n
	}
	return map[string]string{
		"RANK":                         strconv.Itoa(m.Rank + local),
		"LOCAL_RANK":                   strconv.Itoa(local),
		"WORLD_SIZE":                   strconv.Itoa(m.World),
		"LOCAL_WORLD_SIZE":             strconv.Itoa(s.Processes),
		"GROUP_RANK":                   strconv.Itoa(m.Group),
		"GROUP_WORLD_SIZE":             strconv.Itoa(m.Groups),
		"ROLE_RANK":                    strconv.Itoa(roleRank),
		"ROLE_WORLD_SIZE":              strconv.Itoa(roleWorld),
		"ROLE_NAME":                    m.Role,
		"MASTER_ADDR":                  m.Address,
		"MASTER_PORT":                  strconv.Itoa(m.Port),
		"TORCHELASTIC_RESTART_COUNT":   strconv.Itoa(m.Restarts),
		"TORCHELASTIC_MAX_RESTARTS":    strconv.Itoa(m.MaxRestarts),
		"TORCHELASTIC_RUN_ID":          m.Run,
		"TORCHELASTIC_USE_AGENT_STORE": "False", // rank 0 has the store: this agent has none
	}
}

// memberVariables are the variables of Helm's chart distributed-tensorflow, whose
// script takes its index from the end of POD_NAME.
func (s *Spec) memberVariables(local int) map[string]string {
	m := s.Member
	if len(m.Members) == 0 {
		return nil
	}
	index := strconv.Itoa(m.Task + local)
	return map[string]string{
		"WORKER_HOSTS": strings.Join(m.Members[Worker], ","),
		"PS_HOSTS":     strings.Join(m.Members[Server], ","),
		"JOB_NAME":     m.Role,
		"TASK_INDEX":   index,
		"POD_NAME":     m.Run + "-" + m.Role + "-" + index,
	}
}

func (s *Spec) frameworkVariables(local int) map[string]string {
	m := s.Member
	switch s.Framework {
	case TensorFlow:
		if len(m.Members) > 0 {
			return map[string]string{"TF_CONFIG": m.tensorFlow(local)}
		}
	case JAX:
		return map[string]string{
			"JAX_COORDINATOR_ADDRESS": net.JoinHostPort(m.Address, strconv.Itoa(m.Port)),
			"JAX_NUM_PROCESSES":       strconv.Itoa(m.World),
			"JAX_PROCESS_ID":          strconv.Itoa(m.Rank + local),
		}
	}
	return nil
}

// tensorFlow returns TF_CONFIG. An evaluator is not part of the cluster, as
// TensorFlow wants it.
func (m Member) tensorFlow(local int) string {
	type task struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	cluster := maps.Clone(m.Members)
	delete(cluster, Evaluator)
	text, err := json.Marshal(struct {
		Cluster map[string][]string `json:"cluster"`
		Task    task                `json:"task"`
	}{cluster, task{m.Role, m.Task + local}})
	if err != nil {
		panic(fmt.Sprintf("texts and a number are not JSON: %v", err))
	}
	return string(text)
}

// devicesOf returns the devices that a rank sees; nil keeps the variable as it is.
func (s *Spec) devicesOf(local int) []string {
	switch n := len(s.Devices); {
	case n == 0:
		return nil
	case s.Framework == Torch: // the program chooses by LOCAL_RANK
		return s.Devices
	default:
		share := n / s.Processes
		return s.Devices[local*share : (local+1)*share]
	}
}

func (s *Spec) parametersFile() string { return filepath.Join(s.Scratch, "parameters.json") }

func (s *Spec) metricsFile(local int) string {
	return filepath.Join(s.Scratch, fmt.Sprintf("metrics-%d-%d.jsonl", s.Member.Generation, s.Member.Rank+local))
}

func (s *Spec) logFile(local int) string {
	return filepath.Join(s.Logs, fmt.Sprintf("rank-%d.log", s.Member.Rank+local))
}
