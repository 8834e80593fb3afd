// Empty. The target exists for its precompiled headers, and a target needs a source.
