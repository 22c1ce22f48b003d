// Package program runs one generation of a user's program on one machine: it
// starts the ranks with the environment that launchers of distributed programs
// give, keeps their output, reads their metrics and checkpoints, and ends all
// processes when the first rank fails or the caller stops the generation.
//
// Sessions are elsewhere: the caller decides which members there are, which ranks
// the machine has, whether another generation follows and which checkpoint it
// resumes.
// A process that starts generations adopts their orphans (PR_SET_CHILD_SUBREAPER)
// and is best used for nothing else (Spec.Sole). Linux only.
//
// Entry points: Start, Generation.
//
// # What a program sees
//
// The names of torchrun: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
// GROUP_RANK, GROUP_WORLD_SIZE, ROLE_RANK, ROLE_WORLD_SIZE, ROLE_NAME,
// MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RESTART_COUNT,
// TORCHELASTIC_MAX_RESTARTS, TORCHELASTIC_RUN_ID and
// TORCHELASTIC_USE_AGENT_STORE. OMP_NUM_THREADS is 1 where it is unset and the
// machine has several ranks.
//
// Where the members' addresses are known: WORKER_HOSTS, PS_HOSTS, JOB_NAME,
// TASK_INDEX and POD_NAME, whose end is the index. For TensorFlow TF_CONFIG, for
// JAX JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID.
//
// CUDA_VISIBLE_DEVICES has, for PyTorch, all devices of the machine's member, as
// under torchrun, where programs choose by LOCAL_RANK. Other frameworks take all
// devices that they see: each rank sees its own.
//
// STOKE_PARAMETERS is the name of a JSON file with the parameters, and
// STOKE_PARAM_NAME each of them. STOKE_CHECKPOINT_DIR is a folder for checkpoints,
// STOKE_RESUME_FROM the complete checkpoint to begin with, STOKE_DATASET_DIR the
// folder of the run's dataset, and STOKE_METRICS_FILE a file for lines of JSON.
//
// # What a program may report
//
// A line of JSON in the file STOKE_METRICS_FILE, or on the standard output after
// "stoke: ":
//
//	{"step": 100, "loss": 0.25}
//	{"checkpoint": "step-100"}
//
// A checkpoint is a file or folder below STOKE_CHECKPOINT_DIR. It is complete
// when a rank reports it by such a line, or when there is a file ".complete" in
// the folder, or a file with the same name and ".complete" at its end.
package program
