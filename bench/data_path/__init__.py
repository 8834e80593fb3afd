"""What a proxy costs the requests that it passes on."""
