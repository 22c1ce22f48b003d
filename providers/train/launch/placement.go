package launch

// Placement is where the pods of a run on a cluster are, and their resources.
// All of it is part of their templates, which are immutable: a change recreates
// the pods.
type Placement struct {
	Namespace string `json:"namespace"`
	Image     string `json:"image"` // whose entry point is stoke-trainer
	// AgentImage has stoke-trainer as its entry point where Image, of a program's
	// workers and servers, is any image; "" = Image has it.
	AgentImage  string            `json:"agent_image,omitempty"`
	PullPolicy  string            `json:"pull_policy,omitempty"`  // Always, IfNotPresent or Never; "" as Kubernetes chooses
	PullSecrets []string          `json:"pull_secrets,omitempty"` // names of Secrets in the namespace
	Port        int               `json:"port"`                   // of the roles; the API has the next one
	Environment map[string]string `json:"environment,omitempty"`

	// Dataset is the folder of the prepared dataset in the pods.
	Dataset string `json:"dataset"`
	// Checkpoints is a bucket (gs://, s3://) or a folder on a volume that the
	// coordinator and the servers share; "" = with the coordinator's log.
	Checkpoints string `json:"checkpoints,omitempty"`
	// Program tells a run of a program, which writes its checkpoints itself: those in
	// no place go with the pod of their worker.
	Program bool `json:"program,omitempty"`
	// Storage is the size of the claim that keeps the coordinator's log, such
	// as "1Gi"; "" = the log is the pod's own and goes with it.
	Storage      string `json:"storage,omitempty"`
	StorageClass string `json:"storage_class,omitempty"` // "" = the cluster's default

	Coordinator PodRole `json:"coordinator"`
	Server      PodRole `json:"server"`
	Worker      PodRole `json:"worker"`
	// HighPriority is how many of the workers, from worker 0 on, have the
	// higher priority class.
	HighPriority int `json:"high_priority,omitempty"`

	Volumes []Volume `json:"volumes,omitempty"`
}

// Durable reports whether checkpoints outlive the run's pods.
func (p *Placement) Durable() bool { return p.Checkpoints != "" || p.Storage != "" && !p.Program }

// PodRole is what each pod of a role gets. Quantities are Kubernetes' ("500m",
// "2Gi"), requested and limited alike; "" is none.
type PodRole struct {
	CPU              string            `json:"cpu,omitempty"`
	Memory           string            `json:"memory,omitempty"`
	EphemeralStorage string            `json:"ephemeral_storage,omitempty"`
	SharedMemory     string            `json:"shared_memory,omitempty"` // of /dev/shm; a part of Memory
	GPUResource      string            `json:"gpu_resource,omitempty"`  // such as nvidia.com/gpu or nvidia.com/mig-1g.10gb
	GPUs             int               `json:"gpus,omitempty"`
	Bandwidth        int               `json:"bandwidth,omitempty"` // Mbit/s, in each direction
	NodeSelector     map[string]string `json:"node_selector,omitempty"`
	Tolerations      []Toleration      `json:"tolerations,omitempty"`
	Priority         string            `json:"priority,omitempty"`    // PriorityLow, PriorityHigh; "" = the cluster's default
	SpreadOver       string            `json:"spread_over,omitempty"` // a node label: as many pods on one value as on another
}

// WithoutGPUs returns what a container gets that uses no GPU.
func (r PodRole) WithoutGPUs() PodRole {
	r.GPUs = 0
	return r
}

// The priorities of pods beside the cluster's default.
const (
	PriorityLow  = "low"
	PriorityHigh = "high"
)

// Toleration lets pods onto nodes with a taint.
type Toleration struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`  // "" = whichever
	Effect string `json:"effect,omitempty"` // "" = all
}

// Volume is mounted in all pods of a run. One of its sources is given.
type Volume struct {
	Path     string `json:"path"` // in the pods
	SubPath  string `json:"sub_path,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`

	Claim     string `json:"claim,omitempty"`      // name of a PersistentVolumeClaim
	HostPath  string `json:"host_path,omitempty"`  // folder of the node
	NFSServer string `json:"nfs_server,omitempty"` // with NFSPath
	NFSPath   string `json:"nfs_path,omitempty"`
	ConfigMap string `json:"config_map,omitempty"`
	Secret    string `json:"secret,omitempty"`
	EmptyDir  string `json:"empty_dir,omitempty"` // size limit; each pod has its own
}
