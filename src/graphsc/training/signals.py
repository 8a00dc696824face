"""Being asked to stop, under the name that training knows it by."""

from __future__ import annotations

from graphsc.core.signals import StoppedError, StopRequest, stop_requests

__all__ = ["StopRequest", "StoppedError", "stop_requests"]
