package metal

// verifyImage has a shell, and is small.
const verifyImage = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"
