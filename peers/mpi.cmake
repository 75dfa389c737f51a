# weft-mpi: the pair that `weft peers` measures Open MPI with. Built where there is an MPI compiler, and never installed.
# A sanitizer would judge the MPI library, not us.
#
# Distributions have the compiler's name apart from its headers, and FindMPI ends the configuration where a folder of
# theirs is missing.
find_program(WEFT_MPICC NAMES mpicc)
mark_as_advanced(WEFT_MPICC)
set(without_headers "")
if(WEFT_MPICC)
  execute_process(COMMAND ${WEFT_MPICC} -E -I${PROJECT_SOURCE_DIR}/transport -I${PROJECT_SOURCE_DIR}
    ${CMAKE_CURRENT_LIST_DIR}/mpi_pair.c RESULT_VARIABLE without_headers OUTPUT_QUIET ERROR_QUIET)
endif()
if(NOT WEFT_SANITIZE AND (NOT WEFT_MPICC OR without_headers STREQUAL "0"))
  find_package(MPI QUIET COMPONENTS C)
endif()
if(MPI_C_FOUND)
  add_executable(weft_mpi mpi_pair.c)
  set_target_properties(weft_mpi PROPERTIES OUTPUT_NAME weft-mpi)
  target_link_libraries(weft_mpi PRIVATE weft_base weft_flags MPI::MPI_C m)
endif()
