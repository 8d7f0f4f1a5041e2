! restride for Fortran 2008, by iso_c_binding: types that own handles, and errors as a status and a message.
!
! Every procedure that can fail has the optional arguments `stat` (0 is success, else a RESTRIDE_KIND) and `errmsg`. Without `stat` an
! error ends the program with its message. Memory that is bound must be `target`, contiguous, and stay as long as restride.h says.
! Sizes are those of PyTorch, slowest first: a Fortran array a(8, 4) is the tensor of sizes [4, 8].
module restride
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private

    public :: restride_program, restride_compiled, restride_instance, restride_session, restride_outputs
    public :: tensor, described, tensor_of

    integer, parameter, public :: role_input = 0, role_output = 1, role_state = 2
    integer, parameter, public :: contents_copy = 0, contents_keep = 1
    integer, parameter, public :: optimizer_none = 0, optimizer_sgd = 1, optimizer_adam = 2

    integer, parameter :: most_dimensions = 8

    type, bind(c) :: dl_device
        integer(c_int) :: device_type = 1
        integer(c_int32_t) :: device_id = 0
    end type

    type, bind(c) :: dl_data_type
        integer(c_int8_t) :: code = 0
        integer(c_int8_t) :: bits = 0
        integer(c_int16_t) :: lanes = 1
    end type

    type, bind(c) :: dl_tensor
        type(c_ptr) :: data = c_null_ptr
        type(dl_device) :: device
        integer(c_int32_t) :: ndim = 0
        type(dl_data_type) :: dtype
        type(c_ptr) :: shape = c_null_ptr
        type(c_ptr) :: strides = c_null_ptr
        integer(c_int64_t) :: byte_offset = 0
    end type

    type, bind(c) :: dl_managed_tensor
        integer(c_int32_t) :: major = 1, minor = 0
        type(c_ptr) :: manager_ctx = c_null_ptr
        type(c_funptr) :: deleter = c_null_funptr
        integer(c_int64_t) :: flags = 0
        type(dl_tensor) :: dl
    end type

    type, bind(c) :: raw_tensor
        type(c_ptr) :: name = c_null_ptr
        type(c_ptr) :: tensor = c_null_ptr
        type(c_ptr) :: managed = c_null_ptr
        integer(c_int32_t) :: storage = 0
        integer(c_int32_t) :: flags = 0
    end type

    type, bind(c) :: raw_description
        type(c_ptr) :: name
        integer(c_int32_t) :: kind
        integer(c_int32_t) :: mutated
        type(dl_data_type) :: dtype
        integer(c_int32_t) :: ndim
        type(c_ptr) :: sizes
        type(c_ptr) :: strides
        integer(c_size_t) :: storage_bytes
    end type

    type, bind(c) :: raw_size
        type(c_ptr) :: text
        integer(c_int64_t) :: least, most
    end type

    type, bind(c) :: grad_options
        integer(c_size_t) :: size
        integer(c_size_t) :: loss
        type(c_ptr) :: wrt
        integer(c_size_t) :: wrt_count
        integer(c_int64_t) :: max_trips
        integer(c_int32_t) :: optimizer, nesterov, amsgrad, decoupled_weight_decay, maximize, reserved
        real(c_double) :: lr, weight_decay, momentum, dampening, beta1, beta2, eps
    end type
    public :: grad_options, default_grad_options

    ! A tensor in memory of the program (tensor_of), or one that restride gave, which `free` frees.
    type :: tensor
        character(len=:), allocatable :: name
        integer(c_int64_t) :: sizes(most_dimensions) = 0
        type(dl_tensor) :: dl
        type(c_ptr) :: managed = c_null_ptr
    contains
        procedure :: bytes => tensor_bytes
        procedure :: free => tensor_free
    end type

    ! What an input, an output or a tensor of the state is.
    type :: described
        character(len=:), allocatable :: name
        integer :: kind = 0, mutated = 0
        integer(c_int64_t), allocatable :: least(:), most(:)
        integer(c_size_t) :: storage_bytes = 0
    end type

    interface tensor_of
        module procedure tensor_of_r4, tensor_of_r8, tensor_of_i4, tensor_of_i8, tensor_of_bytes
    end interface

    type :: restride_program
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: open => program_open
        procedure :: save => program_save
        procedure :: grad => program_grad
        procedure :: describe => program_describe
        procedure :: sample => program_sample
        procedure :: free => program_free
    end type

    type :: restride_compiled
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: compile => compiled_compile
        procedure :: free => compiled_free
    end type

    type :: restride_instance
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: create => instance_create
        procedure :: bind_state => instance_bind_state
        procedure :: state => instance_state
        procedure :: run => instance_run
        procedure :: free => instance_free
    end type

    type :: restride_outputs
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: count => outputs_count
        procedure :: get => outputs_get
        procedure :: free => outputs_free
    end type

    type :: restride_session
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: create => session_create
        procedure :: run => session_run
        procedure :: free => session_free
    end type

    interface
        function c_strlen(text) bind(c, name='strlen') result(n)
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: n
        end function
        function c_status_kind(status) bind(c, name='restride_status_kind') result(kind)
            import
            type(c_ptr), value :: status
            integer(c_int32_t) :: kind
        end function
        function c_status_text(status) bind(c, name='restride_status_text') result(text)
            import
            type(c_ptr), value :: status
            type(c_ptr) :: text
        end function
        subroutine c_status_free(status) bind(c, name='restride_status_free')
            import
            type(c_ptr), value :: status
        end subroutine
        function c_open(path, options, program) bind(c, name='restride_open') result(status)
            import
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), value :: options
            type(c_ptr), intent(out) :: program
            type(c_ptr) :: status
        end function
        function c_save(program, path) bind(c, name='restride_save') result(status)
            import
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr) :: status
        end function
        subroutine c_grad_options_init(options) bind(c, name='restride_grad_options_init')
            import
            type(grad_options), intent(out) :: options
        end subroutine
        function c_grad(program, options, joint) bind(c, name='restride_grad') result(status)
            import
            type(c_ptr), value :: program
            type(grad_options), intent(in) :: options
            type(c_ptr), intent(out) :: joint
            type(c_ptr) :: status
        end function
        function c_count(program, role, count) bind(c, name='restride_program_count') result(status)
            import
            type(c_ptr), value :: program
            integer(c_int32_t), value :: role
            integer(c_size_t), intent(out) :: count
            type(c_ptr) :: status
        end function
        function c_describe(program, role, index, description) bind(c, name='restride_program_describe') result(status)
            import
            type(c_ptr), value :: program
            integer(c_int32_t), value :: role
            integer(c_size_t), value :: index
            type(raw_description), intent(out) :: description
            type(c_ptr) :: status
        end function
        function c_sample(program, index, tensor) bind(c, name='restride_program_sample') result(status)
            import
            type(c_ptr), value :: program
            integer(c_size_t), value :: index
            type(c_ptr), intent(out) :: tensor
            type(c_ptr) :: status
        end function
        subroutine c_program_free(program) bind(c, name='restride_program_free')
            import
            type(c_ptr), value :: program
        end subroutine
        function c_compile(program, inputs, count, options, compiled) bind(c, name='restride_compile') result(status)
            import
            type(c_ptr), value :: program, inputs
            integer(c_size_t), value :: count
            type(c_ptr), value :: options
            type(c_ptr), intent(out) :: compiled
            type(c_ptr) :: status
        end function
        subroutine c_compiled_free(compiled) bind(c, name='restride_compiled_free')
            import
            type(c_ptr), value :: compiled
        end subroutine
        function c_instance_new(compiled, instance) bind(c, name='restride_instance_new') result(status)
            import
            type(c_ptr), value :: compiled
            type(c_ptr), intent(out) :: instance
            type(c_ptr) :: status
        end function
        function c_bind_state(instance, state, count, contents) bind(c, name='restride_instance_bind_state') result(status)
            import
            type(c_ptr), value :: instance
            type(raw_tensor), intent(in) :: state(*)
            integer(c_size_t), value :: count
            integer(c_int32_t), value :: contents
            type(c_ptr) :: status
        end function
        function c_state(instance, name, tensor) bind(c, name='restride_instance_state') result(status)
            import
            type(c_ptr), value :: instance
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), intent(out) :: tensor
            type(c_ptr) :: status
        end function
        function c_run(instance, inputs, count, outputs) bind(c, name='restride_instance_run') result(status)
            import
            type(c_ptr), value :: instance
            type(raw_tensor), intent(in) :: inputs(*)
            integer(c_size_t), value :: count
            type(c_ptr), intent(out) :: outputs
            type(c_ptr) :: status
        end function
        subroutine c_instance_free(instance) bind(c, name='restride_instance_free')
            import
            type(c_ptr), value :: instance
        end subroutine
        function c_outputs_count(outputs) bind(c, name='restride_outputs_count') result(count)
            import
            type(c_ptr), value :: outputs
            integer(c_size_t) :: count
        end function
        function c_outputs_tensor(outputs, index, tensor) bind(c, name='restride_outputs_tensor') result(status)
            import
            type(c_ptr), value :: outputs
            integer(c_size_t), value :: index
            type(c_ptr), intent(out) :: tensor
            type(c_ptr) :: status
        end function
        subroutine c_outputs_free(outputs) bind(c, name='restride_outputs_free')
            import
            type(c_ptr), value :: outputs
        end subroutine
        function c_session_new(instance, inputs, input_count, outputs, output_count, session) &
            bind(c, name='restride_session_new') result(status)
            import
            type(c_ptr), value :: instance
            type(raw_tensor), intent(in) :: inputs(*)
            integer(c_size_t), value :: input_count
            type(raw_tensor), intent(in) :: outputs(*)
            integer(c_size_t), value :: output_count
            type(c_ptr), intent(out) :: session
            type(c_ptr) :: status
        end function
        function c_session_run(session) bind(c, name='restride_session_run') result(status)
            import
            type(c_ptr), value :: session
            type(c_ptr) :: status
        end function
        subroutine c_session_free(session) bind(c, name='restride_session_free')
            import
            type(c_ptr), value :: session
        end subroutine
    end interface

    abstract interface
        subroutine c_deleter(managed) bind(c)
            import
            type(c_ptr), value :: managed
        end subroutine
    end interface

    ! A name for C, which stays where it is as long as the list.
    type :: c_name
        character(kind=c_char), pointer :: text(:) => null()
    end type

contains

    ! Tells the caller of an error, or ends the program with it.
    subroutine check(status, stat, errmsg)
        type(c_ptr), intent(in) :: status
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        character(len=:), allocatable :: text
        integer :: kind
        kind = 0
        text = ''
        if (c_associated(status)) then
            kind = c_status_kind(status)
            text = from_c(c_status_text(status))
            call c_status_free(status)
        end if
        if (present(errmsg) .and. kind /= 0) errmsg = text
        if (present(stat)) then
            stat = kind
        else if (kind /= 0) then
            write (error_unit, '(2a)') 'error: ', text
            error stop 1
        end if
    end subroutine

    function from_c(text) result(out)
        type(c_ptr), intent(in) :: text
        character(len=:), allocatable :: out
        character(kind=c_char), pointer :: all(:)
        integer :: i
        if (.not. c_associated(text)) then
            out = ''
            return
        end if
        call c_f_pointer(text, all, [c_strlen(text)])
        allocate (character(len=size(all)) :: out)
        do i = 1, size(all)
            out(i:i) = all(i)
        end do
    end function

    function make_tensor(name, address, code, bits, sizes) result(t)
        character(len=*), intent(in) :: name
        type(c_ptr), intent(in) :: address
        integer, intent(in) :: code, bits, sizes(:)
        type(tensor) :: t
        t%name = trim(name)
        t%dl%data = address
        t%dl%ndim = size(sizes)
        t%dl%dtype%code = int(code, c_int8_t)
        t%dl%dtype%bits = int(bits, c_int8_t)
        t%sizes(1:size(sizes)) = sizes
    end function

    function tensor_of_r4(name, memory, sizes) result(t)
        character(len=*), intent(in) :: name
        real(c_float), intent(in), target, contiguous :: memory(:)
        integer, intent(in) :: sizes(:)
        type(tensor) :: t
        t = make_tensor(name, c_loc(memory), 2, 32, sizes)
    end function

    function tensor_of_r8(name, memory, sizes) result(t)
        character(len=*), intent(in) :: name
        real(c_double), intent(in), target, contiguous :: memory(:)
        integer, intent(in) :: sizes(:)
        type(tensor) :: t
        t = make_tensor(name, c_loc(memory), 2, 64, sizes)
    end function

    function tensor_of_i4(name, memory, sizes) result(t)
        character(len=*), intent(in) :: name
        integer(c_int32_t), intent(in), target, contiguous :: memory(:)
        integer, intent(in) :: sizes(:)
        type(tensor) :: t
        t = make_tensor(name, c_loc(memory), 0, 32, sizes)
    end function

    function tensor_of_i8(name, memory, sizes) result(t)
        character(len=*), intent(in) :: name
        integer(c_int64_t), intent(in), target, contiguous :: memory(:)
        integer, intent(in) :: sizes(:)
        type(tensor) :: t
        t = make_tensor(name, c_loc(memory), 0, 64, sizes)
    end function

    ! Bytes: memory for a whole storage of the state.
    function tensor_of_bytes(name, memory) result(t)
        character(len=*), intent(in) :: name
        integer(c_int8_t), intent(in), target, contiguous :: memory(:)
        type(tensor) :: t
        t = make_tensor(name, c_loc(memory), 1, 8, [size(memory)])
    end function

    function given(managed) result(t)
        type(c_ptr), intent(in) :: managed
        type(tensor) :: t
        type(dl_managed_tensor), pointer :: m
        integer(c_int64_t), pointer :: sizes(:)
        call c_f_pointer(managed, m)
        t%name = ''
        t%dl = m%dl
        t%managed = managed
        if (m%dl%ndim > most_dimensions) error stop 'a tensor has more dimensions than this module knows'
        if (m%dl%ndim > 0) then
            call c_f_pointer(m%dl%shape, sizes, [m%dl%ndim])
            t%sizes(1:m%dl%ndim) = sizes
        end if
    end function

    ! The bytes of a row-major tensor, where they are.
    function tensor_bytes(self) result(bytes)
        class(tensor), intent(in) :: self
        integer(c_int8_t), pointer :: bytes(:)
        integer(c_int64_t) :: n
        n = product(self%sizes(1:self%dl%ndim)) * (iand(int(self%dl%dtype%bits), 255) / 8)
        call c_f_pointer(self%dl%data, bytes, [n])
    end function

    subroutine tensor_free(self)
        class(tensor), intent(inout) :: self
        type(dl_managed_tensor), pointer :: m
        procedure(c_deleter), pointer :: deleter
        if (.not. c_associated(self%managed)) return
        call c_f_pointer(self%managed, m)
        call c_f_procpointer(m%deleter, deleter)
        call deleter(self%managed)
        self%managed = c_null_ptr
    end subroutine

    ! The tensors as C takes them; `names` keeps the texts.
    subroutine raw(tensors, out, names)
        type(tensor), intent(inout), target :: tensors(:)
        type(raw_tensor), allocatable, intent(out) :: out(:)
        type(c_name), allocatable, intent(out) :: names(:)
        integer :: i, k
        allocate (out(size(tensors)), names(size(tensors)))
        do i = 1, size(tensors)
            tensors(i)%dl%shape = c_loc(tensors(i)%sizes)
            if (.not. c_associated(tensors(i)%managed)) tensors(i)%dl%strides = c_null_ptr
            out(i)%tensor = c_loc(tensors(i)%dl)
            if (len(tensors(i)%name) > 0) then
                allocate (names(i)%text(len(tensors(i)%name) + 1))
                do k = 1, len(tensors(i)%name)
                    names(i)%text(k) = tensors(i)%name(k:k)
                end do
                names(i)%text(size(names(i)%text)) = c_null_char
                out(i)%name = c_loc(names(i)%text)
            end if
        end do
    end subroutine

    subroutine free_names(names)
        type(c_name), intent(inout) :: names(:)
        integer :: i
        do i = 1, size(names)
            if (associated(names(i)%text)) deallocate (names(i)%text)
        end do
    end subroutine

    function default_grad_options() result(options)
        type(grad_options) :: options
        call c_grad_options_init(options)
    end function

    subroutine program_open(self, path, stat, errmsg)
        class(restride_program), intent(inout) :: self
        character(len=*), intent(in) :: path
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        call check(c_open(trim(path)//c_null_char, c_null_ptr, self%handle), stat, errmsg)
    end subroutine

    subroutine program_save(self, path, stat, errmsg)
        class(restride_program), intent(in) :: self
        character(len=*), intent(in) :: path
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        call check(c_save(self%handle, trim(path)//c_null_char), stat, errmsg)
    end subroutine

    ! Forward and backward as one program; with an optimizer, a whole training step.
    subroutine program_grad(self, options, joint, stat, errmsg)
        class(restride_program), intent(in) :: self
        type(grad_options), intent(in) :: options
        type(restride_program), intent(out) :: joint
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        call check(c_grad(self%handle, options, joint%handle), stat, errmsg)
    end subroutine

    subroutine program_describe(self, role, all, stat, errmsg)
        class(restride_program), intent(in) :: self
        integer, intent(in) :: role
        type(described), allocatable, intent(out) :: all(:)
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(raw_description) :: d
        type(raw_size), pointer :: sizes(:)
        integer(c_size_t) :: count, i
        call check(c_count(self%handle, int(role, c_int32_t), count), stat, errmsg)
        allocate (all(count))
        do i = 1, count
            call check(c_describe(self%handle, int(role, c_int32_t), i - 1, d), stat, errmsg)
            all(i)%name = from_c(d%name)
            all(i)%kind = d%kind
            all(i)%mutated = d%mutated
            all(i)%storage_bytes = d%storage_bytes
            allocate (all(i)%least(d%ndim), all(i)%most(d%ndim))
            if (d%ndim > 0) then
                call c_f_pointer(d%sizes, sizes, [d%ndim])
                all(i)%least = sizes%least
                all(i)%most = sizes%most
            end if
        end do
    end subroutine

    ! The sample input at a position, from 1; the caller frees it.
    subroutine program_sample(self, position, sample, stat, errmsg)
        class(restride_program), intent(in) :: self
        integer, intent(in) :: position
        type(tensor), intent(out) :: sample
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(c_ptr) :: managed
        call check(c_sample(self%handle, int(position - 1, c_size_t), managed), stat, errmsg)
        if (c_associated(managed)) sample = given(managed)
    end subroutine

    subroutine program_free(self)
        class(restride_program), intent(inout) :: self
        call c_program_free(self%handle)
        self%handle = c_null_ptr
    end subroutine

    subroutine compiled_compile(self, program, stat, errmsg)
        class(restride_compiled), intent(inout) :: self
        type(restride_program), intent(in) :: program
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        call check(c_compile(program%handle, c_null_ptr, 0_c_size_t, c_null_ptr, self%handle), stat, errmsg)
    end subroutine

    subroutine compiled_free(self)
        class(restride_compiled), intent(inout) :: self
        call c_compiled_free(self%handle)
        self%handle = c_null_ptr
    end subroutine

    subroutine instance_create(self, compiled, stat, errmsg)
        class(restride_instance), intent(inout) :: self
        type(restride_compiled), intent(in) :: compiled
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        call check(c_instance_new(compiled%handle, self%handle), stat, errmsg)
    end subroutine

    ! Memory that must stay until the instance, or the session made of it, is freed.
    subroutine instance_bind_state(self, state, contents, stat, errmsg)
        class(restride_instance), intent(inout) :: self
        type(tensor), intent(inout) :: state(:)
        integer, intent(in) :: contents
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(raw_tensor), allocatable :: all(:)
        type(c_name), allocatable :: names(:)
        call raw(state, all, names)
        call check(c_bind_state(self%handle, all, size(all, kind=c_size_t), int(contents, c_int32_t)), stat, errmsg)
        call free_names(names)
    end subroutine

    ! A tensor of the state where it is; the caller frees it.
    subroutine instance_state(self, name, found, stat, errmsg)
        class(restride_instance), intent(inout) :: self
        character(len=*), intent(in) :: name
        type(tensor), intent(out) :: found
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(c_ptr) :: managed
        call check(c_state(self%handle, trim(name)//c_null_char, managed), stat, errmsg)
        if (c_associated(managed)) found = given(managed)
    end subroutine

    subroutine instance_run(self, inputs, outputs, stat, errmsg)
        class(restride_instance), intent(inout) :: self
        type(tensor), intent(inout) :: inputs(:)
        type(restride_outputs), intent(out) :: outputs
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(raw_tensor), allocatable :: all(:)
        type(c_name), allocatable :: names(:)
        call raw(inputs, all, names)
        call check(c_run(self%handle, all, size(all, kind=c_size_t), outputs%handle), stat, errmsg)
        call free_names(names)
    end subroutine

    subroutine instance_free(self)
        class(restride_instance), intent(inout) :: self
        call c_instance_free(self%handle)
        self%handle = c_null_ptr
    end subroutine

    function outputs_count(self) result(count)
        class(restride_outputs), intent(in) :: self
        integer :: count
        count = int(c_outputs_count(self%handle))
    end function

    ! The output at a position, from 1; the caller frees it.
    subroutine outputs_get(self, position, found, stat, errmsg)
        class(restride_outputs), intent(in) :: self
        integer, intent(in) :: position
        type(tensor), intent(out) :: found
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(c_ptr) :: managed
        call check(c_outputs_tensor(self%handle, int(position - 1, c_size_t), managed), stat, errmsg)
        if (c_associated(managed)) found = given(managed)
    end subroutine

    subroutine outputs_free(self)
        class(restride_outputs), intent(inout) :: self
        call c_outputs_free(self%handle)
        self%handle = c_null_ptr
    end subroutine

    ! Takes the instance, if it succeeds. The memory must stay until the session is freed.
    subroutine session_create(self, instance, inputs, outputs, stat, errmsg)
        class(restride_session), intent(inout) :: self
        type(restride_instance), intent(inout) :: instance
        type(tensor), intent(inout) :: inputs(:), outputs(:)
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(raw_tensor), allocatable :: from(:), to(:)
        type(c_name), allocatable :: from_names(:), to_names(:)
        call raw(inputs, from, from_names)
        call raw(outputs, to, to_names)
        call check(c_session_new(instance%handle, from, size(from, kind=c_size_t), to, size(to, kind=c_size_t), &
                                 self%handle), stat, errmsg)
        call free_names(from_names)
        call free_names(to_names)
        if (c_associated(self%handle)) instance%handle = c_null_ptr
    end subroutine

    subroutine session_run(self, stat, errmsg)
        class(restride_session), intent(inout) :: self
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        call check(c_session_run(self%handle), stat, errmsg)
    end subroutine

    subroutine session_free(self)
        class(restride_session), intent(inout) :: self
        call c_session_free(self%handle)
        self%handle = c_null_ptr
    end subroutine
end module
