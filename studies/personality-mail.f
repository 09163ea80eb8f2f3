# A mail server: a message is removed, one is delivered and made durable, one is read and answered, one is read.

set $dir=/tmp
set $nfiles=1000
set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=16

define fileset name=spool,path=$dir,size=$size,entries=$nfiles,dirwidth=1000000,prealloc=80

define process name=mail
{
  thread name=worker,instances=$nthreads
  {
    flowop deletefile name=remove,filesetname=spool
    flowop createfile name=deliver,filesetname=spool,fd=1
    flowop appendfilerand name=body,iosize=16k,fd=1
    flowop fsync name=sync,fd=1
    flowop closefile name=done,fd=1
    flowop openfile name=answer,filesetname=spool,fd=1
    flowop readwholefile name=read,iosize=1m,fd=1
    flowop appendfilerand name=reply,iosize=16k,fd=1
    flowop fsync name=sync-reply,fd=1
    flowop closefile name=answered,fd=1
    flowop openfile name=look,filesetname=spool,fd=1
    flowop readwholefile name=read-again,iosize=1m,fd=1
    flowop closefile name=looked,fd=1
  }
}

run 60
