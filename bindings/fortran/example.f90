! The two examples: `example decode MODEL.pt2 TOKENS RESULTS` and `example train MODEL.pt2 STEP.pt2 RESULTS`, as bindings/c has them.
program example
    use, intrinsic :: iso_c_binding
    use restride
    implicit none

    type :: buffer
        integer(c_int8_t), allocatable :: bytes(:)
    end type

    character(len=1024) :: args(4)
    character(len=500) :: message = ''
    type(restride_program) :: missing
    integer :: i, results, kind

    do i = 1, 4
        call get_command_argument(i, args(i))
    end do
    if (command_argument_count() /= 4) then
        write (*, '(a)') 'usage: example decode MODEL.pt2 TOKENS RESULTS | example train MODEL.pt2 STEP.pt2 RESULTS'
        stop 2
    end if
    ! An error is a number and a message.
    call missing%open('/nowhere/x.pt2', kind, message)
    if (kind /= 2 .or. message == '') error stop 'a missing file opens'

    open (newunit=results, file=trim(args(4)), access='stream', form='formatted', status='replace', action='write')
    if (args(1) == 'decode') then
        call decode(trim(args(2)), trim(args(3)))
    else
        call train(trim(args(2)), trim(args(3)))
    end if
    close (results)

contains

    ! A line of the results: a name, and bytes as hexadecimal digits.
    subroutine write_result(name, bytes)
        character(len=*), intent(in) :: name
        integer(c_int8_t), intent(in) :: bytes(:)
        character(len=*), parameter :: digits = '0123456789abcdef'
        character(len=:), allocatable :: line
        integer :: at, b
        allocate (character(len=2*size(bytes)) :: line)
        do at = 1, size(bytes)
            b = iand(int(bytes(at)), 255)
            line(2*at - 1:2*at - 1) = digits(b/16 + 1:b/16 + 1)
            line(2*at:2*at) = digits(mod(b, 16) + 1:mod(b, 16) + 1)
        end do
        write (results, '(3a)') name, ' ', line
    end subroutine

    subroutine decode(model, count)
        character(len=*), intent(in) :: model, count
        type(restride_program) :: program
        type(restride_compiled) :: compiled
        type(restride_instance) :: instance
        type(restride_session) :: session
        type(described), allocatable :: all(:)
        type(buffer), allocatable, target :: memory(:)
        type(tensor), allocatable :: state(:)
        type(tensor) :: inputs(2), outputs(1)
        integer(c_int64_t), target :: token(1), position(1)
        real(c_float), target :: logits(128)
        integer :: at, k, used, tokens

        read (count, *) tokens
        call program%open(model)
        call compiled%compile(program)
        call instance%create(compiled)

        ! Every buffer that a step writes gets memory of this program.
        call program%describe(role_state, all)
        allocate (memory(size(all)), state(size(all)))
        used = 0
        do k = 1, size(all)
            if (all(k)%mutated == 1) then
                used = used + 1
                allocate (memory(used)%bytes(all(k)%storage_bytes))
                state(used) = tensor_of(all(k)%name, memory(used)%bytes)
            end if
        end do
        call instance%bind_state(state(1:used), contents_copy)

        token = 1
        position = 0
        inputs(1) = tensor_of('', token, [1, 1])
        inputs(2) = tensor_of('', position, [1])
        outputs(1) = tensor_of('output.0', logits, [1, 1, 128])
        call session%create(instance, inputs, outputs)
        do at = 0, tokens - 1
            position = at
            call session%run()
            call write_result('output.0', outputs(1)%bytes())
            do k = 1, used
                call write_result(state(k)%name, memory(k)%bytes)
            end do
            ! The last of the largest.
            token = maxloc(logits, dim=1, back=.true.) - 1
            write (*, '(i0, 1x)', advance='no') token
        end do
        write (*, *)
        call session%free()
        call compiled%free()
        call program%free()
    end subroutine

    subroutine train(model, to)
        character(len=*), intent(in) :: model, to
        type(restride_program) :: program, step
        type(restride_compiled) :: compiled
        type(restride_instance) :: instance
        type(restride_outputs) :: outputs
        type(grad_options) :: how
        type(described), allocatable :: all(:), state(:)
        type(tensor), allocatable :: inputs(:)
        type(tensor) :: loss, now
        real(c_float), pointer :: value
        character(len=300) :: name
        integer :: at, k

        call program%open(model)
        how = default_grad_options()
        how%optimizer = optimizer_adam
        how%lr = 0.01_c_double
        call program%grad(how, step)
        call step%save(to)
        call compiled%compile(step)
        call instance%create(compiled)
        call step%describe(role_input, all)
        call step%describe(role_state, state)
        allocate (inputs(size(all)))
        do k = 1, size(all)
            call step%sample(k, inputs(k))
        end do
        do at = 0, 9
            call instance%run(inputs, outputs)
            call outputs%get(1, loss)
            call c_f_pointer(loss%dl%data, value)
            write (*, '(g0, 1x)', advance='no') value
            call write_result('output.0', loss%bytes())
            call loss%free()
            call outputs%free()
            if (at == 0 .or. at == 9) then
                do k = 1, size(state)
                    call instance%state(state(k)%name, now)
                    write (name, '(i0, 2a)') at, '.', state(k)%name
                    call write_result(trim(name), now%bytes())
                    call now%free()
                end do
            end if
        end do
        write (*, *)
        do k = 1, size(inputs)
            call inputs(k)%free()
        end do
        call instance%free()
        call compiled%free()
        call step%free()
        call program%free()
    end subroutine
end program
