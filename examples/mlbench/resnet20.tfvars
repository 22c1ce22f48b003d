# MLBench's task 1: ResNet-20 on CIFAR-10 for 164 epochs. path is a folder with the
# pictures, as docs/datasets.md describes it.

task = {
  format = "images"
  path   = "cifar10"
  model  = "resnet20"
  hyperparameters = {
    learning_rate = 0.1
    momentum      = 0.9
    nesterov      = true
    weight_decay  = 0.0001
    batch_size    = 128
    epochs        = 164
    schedule      = "step"
    decay_epochs  = [82, 109]
    random_crop   = 4
    random_flip   = true
  }
}
