add_test(NAME plugin.abi_layout
  COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/abi_layout_test.sh ${CMAKE_C_COMPILER})
set_tests_properties(plugin.abi_layout PROPERTIES LABELS "quick;noasan;notsan" TIMEOUT 60 SKIP_RETURN_CODE 77)

# The driver, and a plugin that it is tested with.
add_executable(conform conform.c conform_bytes.c conform_calls.c conform_close.c conform_connect.c conform_flow.c
  conform_life.c conform_log.c conform_loss.c conform_polled.c conform_process.c conform_random.c conform_rank.c conform_table.c
  conform_transfer.c)
target_link_libraries(conform PRIVATE weft_flags Threads::Threads ${CMAKE_DL_LIBS})
add_library(nccl_standin MODULE standin.c standin_tables.c)
target_link_libraries(nccl_standin PRIVATE weft_flags Threads::Threads)

set(conform_slower 1)
set(conform_environment "WEFT_RAILS=127.0.1.1,127.0.2.1")
if(WEFT_SANITIZE)
  set(conform_slower 5)
  list(APPEND conform_environment
    "TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
endif()

# conform_test(NAME LABELS SECONDS PLUGIN ARGUMENT... [ENVIRONMENT NAME=VALUE...])
function(conform_test name labels seconds plugin)
  cmake_parse_arguments(PARSE_ARGV 4 conform "" "" "ENVIRONMENT")
  add_test(NAME plugin.${name}
    COMMAND conform --plugin $<TARGET_FILE:${plugin}> ${conform_UNPARSED_ARGUMENTS})
  math(EXPR seconds "${seconds} * ${conform_slower} * 3") # others may keep the processors busy
  set_tests_properties(plugin.${name} PROPERTIES LABELS "${labels}" TIMEOUT ${seconds} SKIP_RETURN_CODE 77
    RESOURCE_LOCK loopback ENVIRONMENT "${conform_environment};${conform_ENVIRONMENT}")
endfunction()

# Of the rules, the stand-in keeps those of NCCL; ours go further.
conform_test(conform_standin quick 60 nccl_standin --rounds 20 --schedules 3
  --except shared_sockets,nccl_names,idle_peer,profiled,waits_are_said,connect_given_up,deregister_in_flight,proven_first,traffic_class,unknown_class)
add_test(NAME plugin.conform_mutations
  COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/conform_mutations_test.sh $<TARGET_FILE:conform> $<TARGET_FILE:nccl_standin>)
set_tests_properties(plugin.conform_mutations PROPERTIES LABELS "quick;noasan;notsan" TIMEOUT 120
  RESOURCE_LOCK loopback)

if(TARGET weft_nccl_inside)
  foreach(version 8 9 10 11 12)
    set(labels quick)
    if(version EQUAL 11)
      list(APPEND labels smoke)
    endif()
    conform_test(conform_v${version} "${labels}" 100 weft_nccl_inside --table v${version} --rounds 20 --schedules 5)
    conform_test(conform_four_v${version} full 600 weft_nccl_inside --table v${version} --processes 4 --rounds 1000
      --schedules 50)
  endforeach()

  # The cases in which bytes move, over a bad network.
  set(conform_moving connect,transfer,close,random)
  function(conform_fault name labels)
    conform_test(conform_${name} "${labels}" 200 weft_nccl_inside --case ${conform_moving} --rounds 20 --schedules 5
      ENVIRONMENT ${ARGN})
    conform_test(conform_four_${name} full 400 weft_nccl_inside --case ${conform_moving} --processes 4 --rounds 20
      --schedules 5 ENVIRONMENT ${ARGN})
  endfunction()
  conform_fault(short quick "WEFT_FAULT=short=1")
  conform_test(conform_whole_words full 600 weft_nccl_inside --case whole_words --rounds 400)
  conform_test(conform_whole_words_short full 600 weft_nccl_inside --case whole_words --rounds 200
    ENVIRONMENT WEFT_FAULT=short=1)
  conform_test(conform_whole_words_reset full 600 weft_nccl_inside --case whole_words --rounds 200
    ENVIRONMENT WEFT_FAULT=reset_every=2M WEFT_CHUNK=64K)
  conform_fault(reset quick "WEFT_FAULT=reset_every=2M" WEFT_CHUNK=64K)
  conform_fault(killed_rail full "WEFT_FAULT=drop=1@20+3000")
  foreach(version 8 9 10 11 12)
    conform_test(conform_reset_v${version} full 200 weft_nccl_inside --table v${version} --case ${conform_moving},loss
      --rounds 20 --schedules 5 ENVIRONMENT "WEFT_FAULT=reset_every=2M" WEFT_CHUNK=64K)
  endforeach()
  conform_test(conform_rounds full 600 weft_nccl_inside --case rounds --rounds 1000)
  conform_fault(flip full "WEFT_FAULT=flip_every=4M" WEFT_CRC=on)
  conform_fault(window full WEFT_WINDOW=1)
  foreach(seed 1 2 3 4)
    conform_test(conform_schedules_${seed} full 1200 weft_nccl_inside --case schedules --schedules 500 --seed ${seed})
  endforeach()
endif()

if(TARGET weft_nccl_inside)
  add_test(NAME plugin.killed_sockets
    COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/killed_sockets_test.sh $<TARGET_FILE:conform> $<TARGET_FILE:weft_nccl_inside>)
  math(EXPR seconds "120 * ${conform_slower} * 3")
  set_tests_properties(plugin.killed_sockets PROPERTIES LABELS "quick;noasan;notsan" TIMEOUT ${seconds} SKIP_RETURN_CODE 77
    RESOURCE_LOCK loopback ENVIRONMENT "${conform_environment}")
endif()

# As it is installed: with all that it needs inside, of which nothing may stay.
if(TARGET weft_nccl)
  conform_test(conform_installed quick 60 weft_nccl --alone --rounds 20 --case connect,close,life)
endif()
