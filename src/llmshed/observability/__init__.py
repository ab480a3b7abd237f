"""What a running gateway tells of itself: metrics, one decision line a request, and its log."""
