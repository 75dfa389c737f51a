add_test(NAME plugin.abi_layout
  COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/abi_layout_test.sh ${CMAKE_C_COMPILER})
set_tests_properties(plugin.abi_layout PROPERTIES LABELS "quick;noasan;notsan" TIMEOUT 60 SKIP_RETURN_CODE 77)
