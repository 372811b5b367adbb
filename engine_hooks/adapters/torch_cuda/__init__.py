"""Graph executions of PyTorch on CUDA: `executions.cuda_executions` is what an engine calls."""
