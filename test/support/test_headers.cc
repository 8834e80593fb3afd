// Nothing: the target has precompiled headers, and needs a source to belong to.
