// Empty on purpose: libtile.so is made of the layers' archives.
