# weft-mpi: the pair that `weft peers` measures Open MPI with. Built where there is an MPI compiler, and never installed.
# A sanitizer would judge the MPI library, not us.
if(NOT WEFT_SANITIZE)
  find_package(MPI QUIET COMPONENTS C)
endif()
if(MPI_C_FOUND)
  add_executable(weft_mpi mpi_pair.c)
  set_target_properties(weft_mpi PROPERTIES OUTPUT_NAME weft-mpi)
  target_link_libraries(weft_mpi PRIVATE weft_base weft_flags MPI::MPI_C m)
endif()
