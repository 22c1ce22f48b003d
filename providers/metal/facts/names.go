package facts

// nameOfGPU knows the GPUs that are trained on, for machines without a driver
// and without pci.ids, from which these are (pci-ids.ucw.cz).
func nameOfGPU(id string) string {
	return map[string]string{
		"10de:15f8": "Tesla P100 PCIe 16GB",
		"10de:15f9": "Tesla P100 SXM2 16GB",
		"10de:1db1": "Tesla V100 SXM2 16GB",
		"10de:1db4": "Tesla V100 PCIe 16GB",
		"10de:1db5": "Tesla V100 SXM2 32GB",
		"10de:1db6": "Tesla V100 PCIe 32GB",
		"10de:1db8": "Tesla V100 SXM3 32GB",
		"10de:1df6": "Tesla V100S PCIe 32GB",
		"10de:1eb8": "Tesla T4",
		"10de:20b0": "A100 SXM4 40GB",
		"10de:20b2": "A100 SXM4 80GB",
		"10de:20b5": "A100 PCIe 80GB",
		"10de:20b7": "A30 PCIe",
		"10de:20f1": "A100 PCIe 40GB",
		"10de:20f3": "A800-SXM4-80GB",
		"10de:20f5": "A800 80GB PCIe",
		"10de:2230": "RTX A6000",
		"10de:2235": "A40",
		"10de:2236": "A10",
		"10de:2237": "A10G",
		"10de:2322": "H800 PCIe",
		"10de:2324": "H800",
		"10de:2330": "H100 SXM5 80GB",
		"10de:2331": "H100 PCIe",
		"10de:2335": "H200 SXM 141GB",
		"10de:25b6": "A2 / A16",
		"10de:26b5": "L40",
		"10de:26b9": "L40S",
		"10de:27b8": "L4",
		"10de:2901": "B200",
	}[id]
}
