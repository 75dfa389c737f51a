# weft-coll-openmpi, weft-coll-mpich, weft-coll-gloo: one rank each of what `weft collective` compares with. Each is built
# where its compiler and library are, and never installed. Their compilers are asked directly, for CMake knows one MPI and
# this project is in C; a sanitizer would judge those libraries, not us.
find_program(WEFT_MPICC_OPENMPI NAMES mpicc.openmpi)
find_program(WEFT_MPICC_MPICH NAMES mpicc.mpich)
find_program(WEFT_CXX NAMES c++ g++ clang++)
mark_as_advanced(WEFT_MPICC_OPENMPI WEFT_MPICC_MPICH WEFT_CXX)

# weft_rank_program(BACKEND COMPILER SOURCE [FLAG]...): where a try with the compiler works. Flags are for the linker, too.
function(weft_rank_program backend compiler source)
  set(folder ${PROJECT_SOURCE_DIR}/bench/collective/ranks)
  set(words -O2 -Wall -Wextra -D_GNU_SOURCE -DRANK_BACKEND="${backend}" -I${PROJECT_SOURCE_DIR}/transport -I${PROJECT_SOURCE_DIR}
    -I${folder} ${folder}/${source})
  if(WEFT_SANITIZE OR CMAKE_CROSSCOMPILING OR NOT compiler)
    return()
  endif()
  execute_process(COMMAND ${compiler} -fsyntax-only ${words} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed STREQUAL "0")
    return()
  endif()
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/weft-coll-${backend})
  set(objects $<TARGET_OBJECTS:weft_bench_collective_ranks> $<TARGET_OBJECTS:weft_base>)
  add_custom_command(OUTPUT ${program} COMMAND ${compiler} ${words} ${objects} -o ${program} ${ARGN} -lm -ldl -pthread
    DEPENDS ${folder}/${source} ${folder}/rank.h ${folder}/asked.h ${folder}/bandwidth.h ${objects} COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "weft-coll-${backend}")
  add_custom_target(weft_coll_${backend} ALL DEPENDS ${program})
  add_dependencies(weft_coll_${backend} weft_bench_collective_ranks weft_base) # which make does not know to make
endfunction()

weft_rank_program(openmpi "${WEFT_MPICC_OPENMPI}" mpi.c)
weft_rank_program(mpich "${WEFT_MPICC_MPICH}" mpi.c)
weft_rank_program(gloo "${WEFT_CXX}" gloo.cc -lgloo)
