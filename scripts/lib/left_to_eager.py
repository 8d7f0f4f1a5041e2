"""What `torch.compile(backend="restride")` left to eager PyTorch."""

import logging


class Watch(logging.Handler):
    """Collects what the backend says that it left, alone: nothing goes to other handlers."""

    def __init__(self, log):
        super().__init__()
        self.left = []
        log.setLevel(logging.INFO)
        log.handlers, log.propagate = [self], False

    def emit(self, record):
        self.left.append(record.getMessage().partition("eager PyTorch: ")[2])
