# Weft in a container, for machines where neither building nor the bundle is an option:
#
#     docker build -t weft .
#     docker run --rm --network host weft                      # two nodes on this machine
#     docker run --rm --network host weft server               # one of two machines
#     docker run --rm --network host --entrypoint weft weft config
#
# --network host: the rails are the machine's network cards, and a bridge between would be measured with them. Results
# stay with -v "$PWD/results:/opt/weft/results". Where PMIx is to start it (Open MPI's mpirun, srun --mpi=pmix), the image
# needs libpmix2, which is not in it: build one FROM weft that installs it, or name a --rendezvous.

FROM debian:12-slim AS build
WORKDIR /source
# What the build needs is known to setup.sh. On its own, so that a change of the sources does not repeat it.
COPY setup.sh .
RUN apt-get update && ./setup.sh
COPY . .
RUN cmake -S . -B /build -DWEFT_TESTS=OFF -DWEFT_NCCL_PLUGIN=OFF && cmake --build /build --parallel "$(nproc)" && \
    cmake --build /build --target bundle && mkdir /opt/weft && tar -C /opt/weft --strip-components 1 -xzf /build/weft-*.tar.gz

FROM debian:12-slim
COPY --from=build /opt/weft /opt/weft
RUN ln -s /opt/weft/bin/weft /usr/local/bin/weft
WORKDIR /opt/weft
ENTRYPOINT ["/opt/weft/run_p2p_fullmesh.sh"]
